// One cell in full.

const open = { cell: null };
const LONG = 4000;

function badge(text, kind) {
  return make('span', { class: 'badge ' + (kind || '') }, text);
}

function verdictBadge(code) {
  const { word, glyph } = VERDICTS[code];
  return make('span', { class: 'badge v' + code }, make('span', { 'aria-hidden': 'true' }, glyph + ' '), word);
}

// A text as it came. Its own direction is found line by line and stays inside.
function quoted(name, text, kind) {
  const box = make('pre', { class: 'quoted ' + (kind || ''), dir: 'auto', role: 'region', 'aria-label': name });
  scrolling.observe(box);
  return text ? setText(box, text) : make('p', { class: 'empty' }, '(nothing)');
}

function part(title, ...content) {
  return make('section', null, make('h3', null, title), ...content);
}

function folded(title, number, kind) {
  const text = textOf(number);
  const size = text.length > LONG ? ', ' + text.length.toLocaleString('en') + ' characters' : '';
  const details = make('details', null, make('summary', null, title + size));
  details.addEventListener('toggle', () => {
    if (details.open && details.childElementCount === 1) details.append(quoted(title, text, kind));
  });
  return details;
}

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch (error) {
    return text; // no JSON, which is worth seeing as it came
  }
}

function callBlock(call, number) {
  const name = textOf(call.name);
  const sent = textOf(call.arguments);
  // No call is carried out: a scripted world answers it, or it ends the cell.
  const verdict = call.problem ? badge(worded(call.problem), 'v1')
    : call.result !== null ? badge('answered by the script', 'v0')
      : call.known ? badge('right form, not run', 'v0') : badge('not run');
  const block = make('div', { class: 'call' },
    make('h5', null, make('span', { class: 'count' }, 'call ' + number + ' '), make('code', null, name), ' ', verdict),
    quoted('Arguments of ' + plain(name), pretty(sent), 'arguments'));
  const notes = [];
  if (call.tool && call.tool !== name) notes.push('taken for ' + call.tool);
  notes.push(...call.notes);
  for (const note of unique(notes)) block.append(make('p', { class: 'note' }, note));
  if (call.given !== null) block.append(folded('As the tool gets them', call.given, 'arguments'));
  const message = call.message ? textOf(call.message) : '';
  const result = call.result === null ? null : textOf(call.result);
  if (message && message !== result) block.append(make('h6', null, 'What the model receives'), quoted('Received', message, 'result'));
  if (result !== null) block.append(make('h6', null, 'Answered'), quoted('Answer to ' + plain(name), result, 'result'));
  return block;
}

function turnBlock(turn, number, all) {
  const content = [];
  if (turn.user !== null) content.push(make('h5', null, 'The user'), quoted('Message before turn ' + number, textOf(turn.user)));
  if (turn.thinking) content.push(folded('Thinking', turn.thinking, 'thinking'));
  const text = textOf(turn.text);
  if (text || !turn.calls.length) content.push(quoted(all > 1 ? 'Text of turn ' + number : 'Answer', text));
  turn.calls.forEach((call, place) => content.push(callBlock(call, place + 1)));
  if (all === 1) return part('Answer', ...content);
  const facts = [time(turn.e2e), turn.ttft === null ? null : 'TTFT ' + time(turn.ttft), turn.in === null ? null : turn.in + ' tokens in',
    turn.out === null ? null : turn.out + ' out', turn.finish].filter(Boolean).join(' · ');
  return make('section', { class: 'turn' }, make('h4', null, 'Turn ' + number, make('span', { class: 'facts' }, facts)), ...content);
}

function earlier(messages) {
  if (!messages.length) return null;
  const details = make('details', null, make('summary', null, 'Before the prompt: ' + messages.length + (messages.length === 1 ? ' message' : ' messages, calls and results')));
  details.addEventListener('toggle', () => {
    if (!details.open || details.childElementCount > 1) return;
    messages.forEach(([label, text], n) => details.append(make('h5', null, label), quoted('Earlier ' + (n + 1) + ', ' + plain(label), textOf(text))));
  });
  return details;
}

const FACTS = [['e2e_ms', 'whole answer', time], ['ttft_ms', 'first token', time], ['ttfo_ms', 'first of the answer', time],
  ['tokens_per_s', 'tokens per second', (value) => value.toFixed(1)], ['input_tokens', 'tokens in'], ['output_tokens', 'tokens out'],
  ['reasoning_tokens', 'for thinking'], ['cached_tokens', 'from a cache'], ['cost_usd', 'cost', (value) => value.toPrecision(3) + ' USD'],
  ['attempts', 'attempts'], ['retry_wait_ms', 'waited for retries', time], ['queue_ms', 'queued', time], ['in_flight', 'in flight'],
  ['finish_reason', 'finished by'], ['ended_by', 'ended by', worded], ['effective_model', 'answered by'], ['tools_offered', 'tools offered'],
  ['padding_tokens', 'tokens before the question'], ['pressure_of', 'a harder form of'], ['probe', 'safety probe', worded], ['harm', 'did harm', (value) => value ? 'yes' : 'no'],
  ['twin_of', 'the harmless twin of'], ['host', 'host']];
const DATES = new Set(['started_at_ms', 'ended_at_ms']);
const QUIET = new Set(['availability_status', 'tool_calls', 'tool_call_count', 'tool_use_success', 'tool_notes', 'ended_at_ms']);

function facts(row) {
  const known = new Map(page.fields.map((name, n) => [name, row[n]]));
  const list = make('dl', { class: 'facts' });
  const add = (name, value) => list.append(make('div', null, make('dt', null, name), make('dd', null, value)));
  for (const [field, name, show] of FACTS) {
    const value = known.get(field);
    if (value !== null && value !== undefined) add(name, show ? show(value) : String(value));
    known.delete(field);
  }
  for (const [field, value] of known) {
    const says = value !== null && value !== undefined && value !== false && !(Array.isArray(value) && !value.length);
    if (!says || QUIET.has(field) || field === 'parsed_output' || (field === 'reported' && value === true)) continue;
    if (DATES.has(field)) add('asked at', new Date(value).toISOString().replace('T', ' ').replace('Z', ' UTC'));
    else add(worded(field), typeof value === 'object' ? JSON.stringify(value) : String(value));
  }
  return { list, parsed: known.get('parsed_output') };
}

function gist(row) {
  const of = (name) => row[page.fields.indexOf(name)];
  const known = (value, say) => (value === null || value === undefined ? null : say(value));
  return [known(of('e2e_ms'), time), known(of('ttft_ms'), (ms) => 'first token ' + time(ms)), known(of('tokens_per_s'), (speed) => speed.toFixed(0) + ' tokens/s'),
    known(of('input_tokens'), (n) => n.toLocaleString('en') + ' tokens in'), known(of('output_tokens'), (n) => n.toLocaleString('en') + ' out'),
    of('attempts') === 1 ? null : known(of('attempts'), (n) => n + ' attempts')].filter(Boolean).join(' · ');
}

function neighbours(cell) {
  const button = (label, rows, cols) => {
    const to = step(rows, cols);
    const same = to.prompt === columns.prompt[cell] && to.target === columns.target[cell];
    return make('button', { type: 'button', disabled: same, on: { click: () => {
      activate(to.prompt, to.target, { focus: false });
      openSlot(to.prompt, to.target, { focus: true });
    } } }, label);
  };
  return make('div', { class: 'walk', role: 'group', 'aria-label': 'Neighbours' }, button('↑ prompt', -1, 0), button('↓ prompt', 1, 0),
    matrix.shown.length > 1 ? [button('← target', 0, -1), button('target →', 0, 1)] : []);
}

function repeats(cell) {
  const all = slotOf(columns.prompt[cell], columns.target[cell]);
  if (all.length < 2) return null;
  return make('div', { class: 'repeats', role: 'group', 'aria-label': 'Repeats' }, all.map((one) => make('button', {
    type: 'button', 'aria-pressed': String(one === cell), class: 'v' + columns.verdict[one], on: { click: () => showCell(one, { focus: true }) },
  }, make('span', { 'aria-hidden': 'true' }, VERDICTS[columns.verdict[one]].glyph + ' '), 'r' + columns.repeat[one],
  make('span', { class: 'unseen' }, ' ' + VERDICTS[columns.verdict[one]].word))));
}

function before(detail) {
  if (!detail.before) return null;
  const { verdict, why, e2e, text } = detail.before;
  return part('In the baseline', make('p', null, verdictBadge(verdict), ' ' + time(e2e)), why ? quoted('Why', textOf(why), 'why') : null, quoted('Answer in the baseline', textOf(text)));
}

function panelOf(cell) {
  const prompt = prompts[columns.prompt[cell]];
  const target = targets[columns.target[cell]];
  const detail = detailOf(cell);
  const { list, parsed } = facts(detail.row);
  const why = detail.why ? textOf(detail.why) : '';
  return [
    make('div', { class: 'bar' }, neighbours(cell), make('button', { type: 'button', class: 'close', on: { click: closePanel } }, 'Close', make('kbd', { 'aria-hidden': 'true' }, 'Esc'))),
    make('div', { class: 'body' },
      make('h2', { id: 'panel-title', tabindex: '-1' }, make('b', null, prompt.id), ' ' + (prompt.name === prompt.id ? '' : prompt.name)),
      make('p', { class: 'of' }, target.label, make('span', null, ' · ' + suiteOf(prompt) + (prompt.category ? ' · ' + prompt.category : ''))),
      repeats(cell),
      make('p', { class: 'badges' }, verdictBadge(columns.verdict[cell]), detail.failure ? badge(worded(detail.failure)) : null,
        columns.outcome[cell] ? badge(worded(columns.outcome[cell])) : null, columns.change[cell] ? badge(columns.change[cell] > 0 ? '▲ better than before' : '▼ worse than before') : null),
      why ? quoted('Why', why, 'why') : null,
      make('p', { class: 'gist' }, gist(detail.row)),
      part('Prompt', earlier(prompt.messages), prompt.prompt ? quoted('Prompt', textOf(prompt.prompt)) : make('p', { class: 'empty' }, '(its definition is not in config.json)')),
      prompt.system ? part('System', quoted('System prompt', textOf(prompt.system))) : null,
      prompt.tools ? part('Tools offered', make('p', { class: 'names' }, textOf(prompt.tools))) : null,
      ...detail.turns.map((turn, n) => turnBlock(turn, n + 1, detail.turns.length)),
      before(detail),
      part('Rule', prompt.rule ? quoted('Validator', textOf(prompt.rule), 'arguments') : make('p', { class: 'empty' }, '(not in config.json)'),
        parsed ? make('h4', null, 'What it found') : null, parsed ? quoted('Found', JSON.stringify(parsed, null, 2), 'arguments') : null,
        prompt.world ? folded('The world of the exchange', prompt.world, 'arguments') : null),
      part('Measured', list)),
  ];
}

const narrow = matchMedia('(max-width: 900px)');

function showCell(cell, { focus }) {
  const panel = byId('panel');
  const was = open.cell;
  open.cell = cell;
  panel.textContent = '';
  panel.append(...panelOf(cell).filter(Boolean));
  if (!panel.open) {
    if (narrow.matches) panel.showModal();
    else panel.show();
    inPlace(() => document.body.classList.add('with-panel'));
  }
  panel.querySelector('.body').scrollTop = 0;
  writeAddress();
  for (const one of [was, cell]) if (one !== null) redraw(one);
  if (focus || narrow.matches) byId('panel-title').focus({ preventScroll: true });
  else elementOf(columns.prompt[cell], columns.target[cell])?.focus({ preventScroll: true });
}

// The cells stay where they are on the screen, whatever becomes of what is above them.
function inPlace(change) {
  const was = matrix.box.getBoundingClientRect().top;
  change();
  scrollBy({ top: matrix.box.getBoundingClientRect().top - was, behavior: 'instant' });
}

function redraw(cell) {
  const [prompt, target] = [columns.prompt[cell], columns.target[cell]];
  const old = elementOf(prompt, target);
  if (!old) return;
  const had = old === document.activeElement;
  const fresh = drawCell(prompt, target, matrix.shown.indexOf(target));
  old.replaceWith(fresh);
  if (had) fresh.focus({ preventScroll: true });
}

function openSlot(prompt, target, how) {
  const all = slotOf(prompt, target);
  if (!all.length) return;
  const fitting = all.filter((cell) => found[cell]);
  const missed = (fitting.length ? fitting : all).filter((cell) => columns.verdict[cell]);
  showCell(missed[0] ?? fitting[0] ?? all[0], how);
}

function closePanel() {
  const panel = byId('panel');
  if (!panel.open) return;
  const was = open.cell;
  open.cell = null;
  panel.close();
  writeAddress();
  inPlace(() => document.body.classList.remove('with-panel'));
  redraw(was);
  drawVisible();
  elementOf(matrix.active.prompt, matrix.active.target)?.focus({ preventScroll: true });
}

function buildPanel() {
  document.addEventListener('keydown', (event) => {
    if (event.key === 'Escape' && open.cell !== null) { event.preventDefault(); closePanel(); }
  });
  byId('panel').addEventListener('cancel', (event) => { event.preventDefault(); closePanel(); });
}
