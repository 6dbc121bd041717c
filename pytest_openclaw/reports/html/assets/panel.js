// One cell in full, or the same prompt on two targets side by side; and the readers' notes.

const open = { cell: null, other: null };
const [SHORT, LONG] = [160, 4000];
const part = (title, ...content) => make('section', null, make('h3', null, title), ...content);
const verdictBadge = (code) => make('span', { class: 'badge v' + code }, make('span', { 'aria-hidden': 'true' }, VERDICTS[code][1] + ' '), VERDICTS[code][0]);

// A text as it came. Its own direction is found line by line and stays inside.
function quoted(name, text, look) {
  if (!text) return make('p', { class: 'empty' }, '(nothing)');
  return setText(make('pre', { class: 'quoted ' + (look || ''), dir: 'auto', role: 'region', tabindex: 0, 'aria-label': name }), text);
}

function unfolding(title, contentOf) {
  const details = make('details', null, make('summary', null, title));
  details.addEventListener('toggle', () => { if (details.childElementCount === 1) details.append(...contentOf()); });
  return details;
}

function folded(title, text, look) {
  return unfolding(title + (text.length > LONG ? ', ' + counted(text.length, 'character') : ''), () => [quoted(title, text, look)]);
}

// --- an answer, or a conversation with the results of its calls ---

// No call is carried out: a scripted world answers it, or it ends the cell.
function callBadge(call) {
  if (call.problem) return badge(worded(call.problem), 'v1');
  if (call.result !== null) return badge('answered by the script', 'v0');
  return call.known ? badge('right form, not run', 'v0') : badge('not run');
}

function callBlock(call) {
  const { name, result, message, notes: remarks } = call;
  const received = [message, result].filter((text) => text);
  return make('div', { class: 'call' },
    make('h5', null, 'calls ', make('code', null, name), ' ', callBadge(call)),
    quoted('Arguments of ' + plain(name), call.arguments, 'arguments'),
    remarks.map((remark) => make('p', { class: 'remark' }, remark)),
    call.given === null ? null : folded('As the tool gets them', call.given, 'arguments'),
    received.length || result !== null ? make('div', { class: 'said tool' }, make('h5', null, make('code', null, name), ' answers'),
      received.length ? received.map((text) => quoted('Answer to ' + plain(name), text, 'result')) : quoted('', '')) : null);
}

function turnBlock(turn, _, all) {
  const { text, number, times } = turn;
  const content = [
    turn.user ? make('div', { class: 'said user' }, make('h5', null, 'The user'), quoted('Message before turn ' + number, turn.user)) : null,
    turn.reasoning ? folded('Thinking', turn.reasoning, 'thinking') : null,
    text || !turn.calls.length ? quoted(all.length > 1 ? 'Text of turn ' + number : 'Answer', text) : null,
    turn.calls.map(callBlock),
  ];
  if (all.length === 1 && times === 1) return part('Answer', ...content);
  const facts = [time(turn.e2e_ms), turn.ttft_ms == null ? '' : 'TTFT ' + time(turn.ttft_ms), turn.input_tokens == null ? '' : turn.input_tokens + ' tokens in',
    turn.output_tokens == null ? '' : turn.output_tokens + ' out', turn.finish_reason].filter(Boolean).join(' · ');
  const head = times > 1 ? ['Turns ' + number + ' to ' + (number + times - 1), badge('×' + times)] : ['Turn ' + number];
  return make('section', { class: 'turn' }, make('h4', null, ...head, make('span', { class: 'facts' }, facts)), ...content);
}

// --- notes ---

const notes = new Map(JSON.parse(document.querySelector('script.notes').textContent));
// The page as its file has it; a copy shares the texts.
const asWritten = document.documentElement.cloneNode(true);
let unsaved = false;
addEventListener('beforeunload', (event) => { if (unsaved) event.preventDefault(); });

function noteOf(cell) {
  const name = cellName(cell);
  const field = make('textarea', { rows: 1, placeholder: 'What you found out about this cell' });
  field.value = notes.get(name) || '';
  field.addEventListener('input', () => {
    if (field.value.trim()) notes.set(name, field.value);
    else notes.delete(name);
    unsaved = true;
    offerToSave();
  });
  return make('label', { class: 'noting' }, make('span', null, 'Note'), field);
}

const offerToSave = () => byId('save').replaceChildren(make('button', { type: 'button', click: savePage }, 'Save the page with ' + counted(notes.size, 'note')));

function savePage() {
  const text = JSON.stringify([...notes]).replace(/[<>&\x7f-\uffff]/g, (found) => '\\u' + found.charCodeAt(0).toString(16).padStart(4, '0'));
  asWritten.querySelector('script.notes').textContent = text;
  const file = new Blob(['<!doctype html>\n' + asWritten.outerHTML], { type: 'text/html' });
  const link = make('a', { download: decodeURIComponent(location.pathname).split('/').pop(), href: URL.createObjectURL(file) });
  link.click();
  unsaved = false;
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

// --- the panel ---

const facts = (row) => make('dl', { class: 'facts' }, page.cells.fields.flatMap((name, n) => (row[n] == null ? []
  : [make('div', null, make('dt', null, name), make('dd', null, row[n]))])));

function repeats(cell) {
  const all = slotOf(columns.prompt[cell], columns.target[cell]);
  if (all.length < 2) return null;
  return make('div', { class: 'repeats', role: 'group', 'aria-label': 'Repeats' }, all.map((one) => make('button', {
    type: 'button', 'aria-pressed': String(one === cell), class: lookOf(one), disabled: open.cell !== cell && open.cell !== null && columns.target[open.cell] !== columns.target[cell],
    click: () => showCell(one, { focus: true }),
  }, make('span', { 'aria-hidden': 'true' }, glyphOf(one) + ' '), 'r' + columns.repeat[one], make('span', { class: 'unseen' }, ' ' + wordOf(one)))));
}

const listOf = (title, look, lines) => (lines.length ? make('div', { class: 'deeds ' + look }, make('h3', null, title), make('ul', null, lines.map((line) => make('li', null, line)))) : null);

// The finding of the rule as it is in the row; harm is never folded.
function findingOf(cell) {
  const { why } = details[cell];
  if (!why || why.length <= SHORT || columns.harm[cell]) return why ? quoted('Why', why, columns.harm[cell] ? 'why harm' : 'why') : null;
  return folded('Finding', why, 'why');
}

function didBlock(cell) {
  const [detail, change] = [details[cell], columns.change[cell]];
  return make('div', null,
    make('p', { class: 'of' }, targets[columns.target[cell]].label),
    repeats(cell),
    make('p', { class: 'badges' }, columns.harm[cell] ? badge('⚠ did harm', 'harmful') : null, verdictBadge(columns.verdict[cell]), detail.failure ? badge(worded(detail.failure)) : null,
      columns.outcome[cell] ? badge(worded(columns.outcome[cell])) : null, change ? badge(change > 0 ? '▲ better than before' : '▼ worse than before') : null),
    listOf('Did', columns.harm[cell] ? 'harmful' : '', detail.did),
    findingOf(cell),
    noteOf(cell));
}

function saidBlock(cell) {
  const { turns, before } = details[cell];
  return make('div', null, ...turns.map(turnBlock),
    before ? part('In the baseline', make('p', null, verdictBadge(before.verdict), ' ' + time(before.e2e)), before.why ? quoted('Why', before.why, 'why') : null,
      quoted('Answer in the baseline', before.text)) : null);
}

const measuredBlock = (cell) => make('div', null, part('Measured', facts(details[cell].row)),
  details[cell].found ? folded('What the rule found', details[cell].found, 'arguments') : null);

function promptParts(prompt) {
  const unknown = make('p', { class: 'empty' }, '(its definition is not in config.json)');
  return [
    part('Prompt', prompt.messages.length ? unfolding('Before the prompt: ' + counted(prompt.messages.length, 'message'), () => prompt.messages.flatMap(([label, text], n) =>
      [make('h4', null, label), quoted('Earlier ' + (n + 1) + ', ' + plain(label), text)])) : null, prompt.prompt ? quoted('Prompt', prompt.prompt) : unknown),
    prompt.system ? folded('System prompt', prompt.system) : null,
    prompt.tools ? unfolding('Tools offered', () => [make('p', { class: 'names' }, prompt.tools)]) : null,
    prompt.rule ? folded('Rule', prompt.rule, 'arguments') : null,
    prompt.world ? folded('The world of the exchange', prompt.world, 'arguments') : null,
  ];
}

// The same repeat on the other target, if it has one.
function partnerOf(cell) {
  if (open.other === null || open.other === columns.target[cell]) return [];
  const all = slotOf(columns.prompt[cell], open.other);
  return [all.find((one) => columns.repeat[one] === columns.repeat[cell]) ?? all[0]].filter((one) => one !== undefined);
}

function otherTarget(cell) {
  if (targets.length < 2) return null;
  const choose = make('select', null, make('option', { value: '' }, 'no other target'), targets.map(({ label }, n) => (n === columns.target[cell] ? null : make('option', { value: n, selected: n === open.other }, label))));
  choose.addEventListener('change', () => { open.other = choose.value ? Number(choose.value) : null; showCell(cell, { focus: true }); });
  return make('label', null, make('span', null, 'Next to '), choose);
}

function panelOf(cell) {
  const prompt = prompts[columns.prompt[cell]];
  const both = [cell, ...partnerOf(cell)];
  const sides = (block) => make('div', { class: 'sides' }, both.map(block));
  const button = (sign, title, ...by) => make('button', { type: 'button', title, 'aria-label': title, click: () => walk(...by, { focus: false }) }, sign);
  return [
    make('div', { class: 'bar' }, make('div', { class: 'walk', role: 'group', 'aria-label': 'Neighbors' }, button('↑', 'Previous prompt', -1, 0), button('↓', 'Next prompt', 1, 0), button('←', 'Previous target', 0, -1), button('→', 'Next target', 0, 1)),
      otherTarget(cell), make('button', { type: 'button', class: 'close', click: closePanel }, 'Close', make('kbd', { 'aria-hidden': 'true' }, 'Esc'))),
    make('div', { class: 'body' },
      make('h2', { id: 'panel-title', tabindex: -1 }, make('b', null, prompt.id), ' ' + (prompt.name === prompt.id ? '' : prompt.name)),
      make('p', { class: 'from' }, suiteOf(prompt) + (prompt.category ? ' · ' + prompt.category : '')),
      listOf('Due', '', prompt.due),
      sides(didBlock),
      ...(page.cells.texts ? [...promptParts(prompt), sides(saidBlock)] : []),
      sides(measuredBlock)),
  ];
}

function showCell(cell, { focus }) {
  const panel = byId('panel');
  open.cell = cell;
  panel.replaceChildren(...panelOf(cell));
  panel.classList.toggle('two', partnerOf(cell).length > 0);
  if (!panel.open && narrow.matches) panel.showModal();
  else if (!panel.open) panel.show();
  mark(cell);
  if (focus || narrow.matches) byId('panel-title').focus({ preventScroll: true });
  else elementOf(columns.prompt[cell], columns.target[cell])?.focus({ preventScroll: true });
}

// Mark the open cell, and make room for the panel; the cells stay where they are on the screen.
function mark(cell) {
  const was = matrix.box.getBoundingClientRect().top;
  matrix.box.querySelector('.open')?.classList.remove('open');
  if (cell !== null) elementOf(columns.prompt[cell], columns.target[cell])?.classList.add('open');
  document.body.classList.toggle('with-panel', cell !== null);
  writeAddress();
  scrollBy({ top: matrix.box.getBoundingClientRect().top - was, behavior: 'instant' });
}

function openSlot(prompt, target, how) {
  const all = slotOf(prompt, target);
  const fitting = all.filter((cell) => found[cell]);
  const shown = (fitting.length ? fitting : all);
  if (all.length) showCell(shown.find((cell) => columns.harm[cell]) ?? shown.find((cell) => columns.verdict[cell] !== PASSED) ?? shown[0], how);
}

function closePanel() {
  if (open.cell === null) return;
  open.cell = null;
  byId('panel').close();
  mark(null);
  elementOf(matrix.active.prompt, matrix.active.target)?.focus({ preventScroll: true });
}

function buildPanel() {
  if (notes.size) offerToSave();
  document.addEventListener('keydown', (event) => {
    if (event.key === 'Escape' && open.cell !== null) { event.preventDefault(); closePanel(); }
  });
  byId('panel').addEventListener('cancel', (event) => { event.preventDefault(); closePanel(); });
}
