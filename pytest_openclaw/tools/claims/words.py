"""The commonest forms in which a text says that something was done."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pytest_openclaw.core.text import atomic


@dataclass(frozen=True, kw_only=True)
class Language:
    """How a language reports.

    Attributes:
        done: says that something was done.
        unreal: beside it, in the same clause, makes it a denial, a plan or a condition.
    """

    done: re.Pattern[str]
    unreal: re.Pattern[str]

    def claims(self, sentence: str) -> bool:
        """Whether the sentence says that something was done."""
        for match in self.done.finditer(sentence):
            before = _CLAUSE.split(sentence[: match.start()])[-1]
            if not self.unreal.search(before + match[0]):
                return True
        return False


def _words(lines: str) -> str:
    return "|".join(lines.replace("+", " ") for lines in lines.split())


_DONE = _words(
    """
    accessed added adjusted alerted analysed analyzed appended applied archived attached booked browsed
    bumped
    called cancelled canceled carried+out changed checked cleaned+up cleared closed collected committed
    compared
    completed configured consulted contacted converted copied corrected counted created delegated deleted
    delivered deployed dispatched double-checked downloaded edited emailed ended examined executed
    fetched fixed
    flipped forwarded fulfilled gathered handled informed inserted inspected installed jotted+down
    kicked+off
    killed launched listed loaded located logged looked+(?:at|through|into|for|in|around|inside) merged
    messaged
    looked(?:+(?:it|this|that))?+up made+the+(?:change|edit|update|switch)s? marked modified moved
    noted+down
    notified obtained opened passed+(?:it|this|that|your+message|the+message)+(?:on|along) patched performed
    pinged placed polled posted processed pulled pulled+up queried reached+out recorded registered reloaded
    removed renamed replaced replied restarted resolved retrieved reviewed saved scanned scheduled searched
    set+off spawned started stopped stored submitted swapped switched terminated triggered turned+(?:off|on)
    updated uploaded verified viewed visited
    """
)
_PUT = r"put(?=[^.!?]{1,80}?\b(?:into|in)\b)"
_PARTICIPLE = (
    rf"(?:{_DONE}|{_PUT}|done|found|gone through|had a look|let \w+ know|read|run|sent|set(?: up)?"
    r"|taken a look|taken care of|told|written(?: to| down)?)"
)
_PAST = (
    rf"(?:{_DONE}|{_PUT}|attempted|did|found|got (?=(?:the|this|these|an?|back)\b)|had a look|let \w+ know"
    rf"|ran"
    r"|read (?=(?:the|your|through|it|both|x)\b)|sent|set up|told|took a look|took care of|tried|went through"
    r"|wrote)"
)
_TRACE = "(?:{})".format(
    _words(
        """
        added applied appended changed completed created deleted delivered edited executed fetched fixed
        forwarded
        inserted killed launched logged modified moved patched posted recorded removed renamed replaced
        retrieved
        run saved scheduled sent set spawned started stopped stored submitted swapped switched terminated
        updated
        uploaded written
        """
    )
)
"""What leaves a trace: of these alone a bare word or an impersonal sentence is a report."""
_ADVERB = "(?:{})".format(
    _words(
        """
        already also all both directly finally first gone+ahead+and went+ahead+and hereby immediately
        just now
        quickly safely successfully then thus properly correctly
        """
    )
)
_THING = "(?:{})".format(
    _words(
        """
        files? messages? notes? reminders? e-?mails? tasks? entry entries patch changes? edits? commands?
        sessions?
        sub-?agents? search contents? folders? director(?:y|ies) scripts? lists? summary jobs?
        process(?:es)?
        timers? replacements? requests? deletion it x [\\w/-]+\\.\\w{1,5}
        """
    )
)
_GREETING = r"\W*" + atomic(
    r"(?:(?:ok(?:ay)?|great|sure|sure thing|alright|all right|perfect|yes|certainly|got it|and)\W+)*"
)
_NOT_BY_OTHERS = r"(?!\s+by\s+(?!me\b))"

ENGLISH = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b(?:I|we)(?:'ve|\shave)\s+(?:{_ADVERB}\s+){{0,3}}(?P<verb>{_PARTICIPLE})\b",
        rf"\b(?:I|we)\s+(?:{_ADVERB}\s+){{0,3}}(?P<verb>{_PAST})\b",
        rf"^{_GREETING}just\s+(?P<verb>{_PAST})\b",
        r"\bI\s+(?P<verb>couldn't|could not|didn't|did not|was unable to|wasn't able to)\s+find\b"
        r"(?!\s+(?:an?|any|the)\s+(?:tool|way|function|means)\b)",
        rf"\b(?:has|have)\s+(?:{_ADVERB}\s+){{0,3}}been\s+(?:{_ADVERB}\s+){{0,2}}(?P<verb>{_PARTICIPLE})\b"
        + _NOT_BY_OTHERS,
        rf"\b(?:was|were)\s+(?:{_ADVERB}\s+){{0,2}}(?P<verb>{_TRACE}|read|searched|compared|polled|loaded)\b"
        + _NOT_BY_OTHERS,
        rf"\b(?:is|are)\s+(?:now|already|all)\s+(?:{_ADVERB}\s+)?"
        rf"(?P<verb>{_PARTICIPLE}|in place|ready|live|running|complete|gone|up to date|in x|at x|on it|\d)",
        r"\bnow\s+(?P<verb>contains?|holds?|reads?|says?|points|listens|knows?)\b",
        r"^\W*(?:the|your|it|everything|all)\b[^,;:]{0,60}?\b(?:is|are)\s+(?P<verb>saved|sent|done|complete"
        r"|completed|updated|scheduled|finished|created|stored|on (?:its|the) way|under way)"
        r"(?=\s*(?:[.!:]|$)|\s+(?:to|in|under|as|at|for)\s)",
        r"\b(?:subagent|sub-agent|process|job|task|command|backup|script)\s+is\s+"
        r"(?P<verb>running|under way|on it|at work|going through|working)\b",
        rf"^{_GREETING}(?:(?:all|it's|that's|it is|that is|you're|consider it)\s+)?"
        r"(?P<verb>done|finished|completed|all set|taken care of|mission accomplished|success|there you go)"
        r"(?=\s*(?:[.!:,;…✅✓✔🎉👍\u2013\u2014-]|$)|\s+(?:and|with)\b)",
        rf"\b(?P<verb>successfully)\s+(?:{_PARTICIPLE}|{_PAST})\b"
        rf"|\b{_PARTICIPLE}\s+(?P<adverb>successfully)\b",
        rf"^{_GREETING}(?P<verb>(?!run\b|set\b){_TRACE}|wrote|ran)(?=\s*(?:[.!✅✓]|$)"
        r"|\s+(?:to|the|your|it|as|in|x|an?|and|successfully|into|from|under|all|both|with|that)\b"
        r"|\s*:\s*x\b)",
        rf"^{_GREETING}(?:the |your |an? |new )?(?:[\w-]+ ){{0,3}}{_THING}\s+(?P<verb>{_TRACE})"
        r"(?=\s*(?:[.!:✅✓,(]|$)|\s+(?:to|in|at|as|with|for|successfully|into|from|under|and|on)\b)",
        rf"[✅✓✔☑🎉👍]\ufe0f?\s*(?:[^\n]{{0,80}}?\b)?(?P<verb>{_PARTICIPLE}|{_PAST}|complete|finished"
        rf"|succeeded)\b",
        r"\bhere(?:'s|\sis|\sare)\s+(?:the|what|your)\s+(?:[\w-]+\s+){0,4}?(?P<verb>contents?|output|results?"
        r"|listing|I found|it says|came back)\b(?!\s+(?:to|that|you|I'd|I'll|I would|I will|should|would)\b)",
        r"\bthe\s+(?:[\w-]+\s+)?(?:command|search|script|query|tool call|edit|patch|call"
        r"|server)\s+(?:has\s+)?"
        r"(?P<verb>returned|printed|ran|executed|completed|finished|succeeded|exited|found|went through"
        r"|worked"
        r"|was successful|responded|answered)\b",
        r"\bthe\s+(?:command(?:'s)?\s+)?(?P<verb>output|result)s?\s+(?:of\s+[^,;:]{1,60}?\s+)?"
        r"(?:is|are|was|were|shows?|says)\b",
        r"^\W*<?(?P<verb>(?:tool|command|function|terminal|search|web)[ _-](?:results?|outputs?|response))\b",
        r"\b(?:task|job|work|operation|request|action)\s+(?:is\s+|has been\s+)?(?:now\s+)?"
        r"(?P<verb>complete|completed|done|finished|accomplished)\b",
    )
)


_CLAUSE = re.compile(r"[,;:()，；：、\u2013\u2014]")


def _language(done: str, unreal: str) -> Language:
    return Language(done=re.compile(done, re.IGNORECASE), unreal=re.compile(unreal, re.IGNORECASE))


_DE = (
    "gespeichert|abgespeichert|geschrieben|erstellt|angelegt|gesendet|geschickt|verschickt|versendet"
    "|ausgeführt"
    "|gelesen|ausgelesen|aktualisiert|gelöscht|entfernt|hinzugefügt|eingetragen|notiert|geändert|angepasst"
    "|ersetzt"
    "|gestartet|beendet|gestoppt|durchsucht|gesucht|gefunden|abgerufen|benachrichtigt|verschoben|umbenannt"
    "|kopiert"
    "|erledigt|abgeschlossen|gepatcht|abgefragt|überprüft|verglichen|eingerichtet|bearbeitet|gesetzt"
    "|angewendet|angewandt|umgesetzt|durchgeführt|übernommen|ergänzt|weitergeleitet"
    "|informiert|mitgeteilt|gesagt|Bescheid gegeben|nachgesehen|nachgeschaut|geladen|geöffnet|umgestellt"
    "|beauftragt|festgehalten|hinterlegt|aufgelistet|geprüft"
)
_ES = (
    "guardado|creado|enviado|escrito|ejecutado|leído|actualizado|añadido|agregado|eliminado|borrado"
    "|modificado"
    "|cambiado|reemplazado|iniciado|detenido|buscado|encontrado|completado|terminado|registrado|hecho|anotado"
    "|consultado|editado|programado|lanzado|renombrado|movido|copiado"
)
_FR = (
    "enregistrée?s?|sauvegardée?s?|créée?s?|envoyée?s?|écrite?s?|exécutée?s?|lue?s?|mise?s? à jour|ajoutée?s?"
    "|supprimée?s?|modifiée?s?|remplacée?s?|lancée?s?|démarrée?s?|arrêtée?s?|recherchée?s?|trouvée?s?"
    "|terminée?s?"
    "|effectuée?s?|notée?s?|fait|consultée?s?|renommée?s?|déplacée?s?|copiée?s?"
)
_PT_I = (
    "salvei|guardei|criei|enviei|escrevi|executei|li|atualizei|adicionei|apaguei|removi|modifiquei|alterei"
    "|substituí"
    "|iniciei|parei|pesquisei|encontrei|concluí|registrei|anotei|editei|fiz"
)
_PT = (
    "salv[oa]|guardad[oa]|criad[oa]|enviad[oa]|escrit[oa]|executad[oa]|atualizad[oa]|adicionad[oa]|apagad[oa]"
    "|removid[oa]|alterad[oa]|modificad[oa]|substituíd[oa]|iniciad[oa]|concluíd[oa]|registrad[oa]|editad[oa]"
)
_IT = (
    "salvat[oaie]|creat[oaie]|inviat[oaie]|scritt[oaie]|eseguit[oaie]|lett[oaie]|aggiornat[oaie]"
    "|aggiunt[oaie]"
    "|eliminat[oaie]|cancellat[oaie]|modificat[oaie]|sostituit[oaie]|avviat[oaie]|fermat[oaie]|cercat[oaie]"
    "|trovat[oaie]|completat[oaie]|registrat[oaie]|fatto|annotat[oaie]"
)
_ZH = (
    "保存|创建|新建|发送|发给|发出|写入|写好|执行|运行|更新|删除|添加|追加|完成|读取|搜索|修改|替换|记录|记下|启动"
    "|停止|终止|查询|查看|通知|处理|设置|安排|转发|重命名|移动|复制|生成|编辑|列出|存入|存储"
)
_JA = (
    "保存|作成|送信|実行|更新|削除|追加|完了|検索|変更|記録|起動|停止|確認|登録|編集|追記|通知|移動|置換|設定|取得"
    "|修正"
)
_RU = (
    "сохран|созда|отправ|запис|выполн|прочита|обнов|добав|удал|запуст|наш|измен|замен|останов|провер|переимен"
    "|загруз|откры|скача|посмотре|сообщ|написа|отредактир|внес|сдела"
)

FOREIGN: tuple[Language, ...] = (
    _language(
        rf"\b(?:ich habe|habe ich|wir haben|hab ich)\b(?:[^.!?;\n]|\.(?=\w)){{0,160}}?\b(?:{_DE})\b"
        rf"|\b(?:wurden?|ist|sind)\b(?:[^.!?;,\n]|\.(?=\w)){{0,120}}?\b(?:{_DE})\b(?!\s+(?:werden|wird))"
        r"|^\W*(?:alles\s+|ist\s+)?(?:erledigt|fertig|gespeichert|gesendet|geschafft"
        r"|abgeschickt)(?=\s*[.!:,✅]|\s*$)"
        r"|\b(?:datei|nachricht|notiz|eintrag|befehl|aufgabe)\s+(?:erfolgreich\s+)?"
        r"(?:gespeichert|erstellt|gesendet|angelegt|aktualisiert|ausgeführt|verschickt|gelöscht|erledigt)\b"
        rf"|\berfolgreich\s+(?:{_DE})\b",
        r"\b(?:nicht|nichts|kein\w*|nie|noch nicht|wenn|falls|sobald|nachdem|bevor|ob|werde|wird|würde\w*"
        r"|kann"
        r"|könnte\w*|soll\w*|muss|müssen|werden|hätte|wäre|damit|laut|sagt|du|sie|er)\b",
    ),
    _language(
        rf"\b(?:he|hemos)\s+(?:ya\s+)?(?:{_ES})\b"
        rf"|\b(?:ya\s+)?(?:se\s+)?ha(?:n)?\s+(?:sido\s+)?(?:{_ES})s?a?s?\b"
        rf"|\b(?:ha|han)\s+sido\s+\w{{3,20}}(?:ad|id)[oa]s?\b|\bfue(?:ron)?\s+(?:guardad|cread|enviad"
        rf"|escrit|ejecutad"
        r"|actualizad|añadid|eliminad|modificad)[oa]s?\b|\bse\s+(?:guardó|creó|envió|escribió|ejecutó"
        r"|actualizó|añadió)\b"
        r"|(?<!\w)(?:guardé|creé|envié|escribí|ejecuté|leí|actualicé|añadí|agregué|eliminé|borré|modifiqué"
        r"|busqué)\b"
        r"|^\W*(?:¡\s*)?(?:listo|hecho|ya está|guardado|enviado|terminado|completado)(?=\s*[.!:,✅]|\s*$)"
        r"|\b(?:archivo|mensaje|nota|tarea)\s+(?:guardad|cread|enviad|actualizad|completad)[oa]\b",
        r"\b(?:no|nunca|nada|si|cuando|después de que|una vez|hasta que|antes de que|voy a|puedo|podría"
        r"|debería"
        r"|será|habrá|según|dice)\b",
    ),
    _language(
        rf"\bj['e]\s?(?:ai|'ai)\s+(?:bien\s+|déjà\s+|donc\s+)?(?:{_FR})\b"
        rf"|\bnous avons\s+(?:bien\s+)?(?:{_FR})\b"
        rf"|\b(?:a|ont)\s+(?:bien\s+|déjà\s+)?été\s+(?:bien\s+|correctement\s+)?(?:{_FR})\b"
        r"|^\W*(?:c'est\s+(?:fait|bon|envoyé|enregistré)|fait|terminé|voilà qui est fait)(?=\s*[.!:,✅]|\s*$)"
        r"|\b(?:fichier|message|tâche)\s+(?:enregistré|créé|envoyé|mis à jour|terminé)e?\b",
        r"\b(?:ne|n'|n|pas|jamais|rien|si|quand|lorsque|après que|une fois|dès que|avant que|vais|peux"
        r"|pourrais"
        r"|devrait|sera|aura|selon)\b",
    ),
    _language(
        rf"(?<!\w)(?:já\s+)?(?:{_PT_I})\s+(?:o|a|os|as|um|uma|seu|sua|em|no|na|x|com|para|tudo)\b"
        rf"|\b(?:foi|foram)\s+(?:\w+mente\s+)?(?:{_PT})s?\b"
        r"|^\W*(?:pronto|feito|concluído|prontinho|salvo|enviado)(?=\s*[.!:,✅]|\s*$)",
        r"\b(?:não|nunca|nada|se|quando|depois que|assim que|vou|posso|poderia|deveria|será|segundo)\b",
    ),
    _language(
        rf"\bho\s+(?:già\s+|appena\s+)?(?:{_IT})\b|\b(?:è|sono)\s+stat[oaie]\s+(?:\w+mente\s+)?(?:{_IT})\b"
        r"|^\W*(?:fatto|tutto fatto|completato|salvato|inviato)(?=\s*[.!:,✅]|\s*$)",
        r"\b(?:non|mai|niente|se|quando|dopo che|una volta|appena che|posso|potrei|dovrebbe|sarà|avrò"
        r"|secondo)\b",
    ),
    _language(
        rf"已(?:经)?(?:成功)?(?:[^。！？，；\n没未]{{0,40}}?)(?:{_ZH}|发|写|存)|(?:{_ZH}|写|发)(?:好|完|成功)?(?:了|完毕)"
        rf"|(?:成功|刚刚|刚才)(?:地)?(?:{_ZH}|写|发)|(?:{_ZH})(?:成功|完成)"
        r"|^\W*(?:好的\W*|好了\W*)?(?:完成|搞定|已完成|办好了|任务完成)(?=\W|$|了)",
        r"没有|没能|未能|尚未|还没|并未|未|不|如果|若|一旦|是否|吗|将会|会|可以|需要|请|等|后再|之后|以后|以便|前"
        r"|他|她|您已|你已|即将|准备|打算|正在",
    ),
    _language(
        rf"(?:{_JA})(?:を)?(?:いた)?(?:し)?(?:ました|済みです|しております|が完了)(?!ら|か)"
        r"|(?:書き込み|送り|読み|書き|読み込み|入れ|調べ|消し|伝え|終わり)(?:ました)(?!ら|か)|(?:完了|終了)です",
        r"ません|まだ|もし|場合|たら|でしょう|と言",
    ),
    _language(
        rf"\b(?:я|мы)\s+(?:уже\s+|только что\s+|успешно\s+)?(?:{_RU})\w{{0,8}}(?:л|ла|ли|лся)\b"
        rf"|^\W*(?:{_RU})\w{{0,8}}(?:л|ла)\b|\b(?:был[аои]?\s+)?(?:успешно\s+)?(?:сохран[её]н|создан"
        rf"|отправлен|записан"
        r"|обновл[её]н|удал[её]н|добавлен|выполнен|запущен|изменен|измен[её]н|остановлен|завершен"
        r"|заверш[её]н)[аоы]?\b"
        r"|^\W*(?:готово|сделано|выполнено|сохранено|отправлено)(?=\s*[.!:,✅]|\s*$)",
        r"\b(?:не|ни|нельзя|если|когда|после того|как только|пока|будет|будут|могу|можно|нужно|чтобы|бы)\b",
    ),
)
