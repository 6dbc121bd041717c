// One cell in full.

const open = { cell: null };
const LONG = 4000;
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

// No call is carried out: a scripted world answers it, or it ends the cell.
function callBadge(call) {
  if (call.problem) return badge(worded(call.problem), 'v1');
  if (call.result !== null) return badge('answered by the script', 'v0');
  return call.known ? badge('right form, not run', 'v0') : badge('not run');
}

function callBlock(call, place) {
  const { name, result, message, notes } = call;
  return make('div', { class: 'call' },
    make('h5', null, make('span', { class: 'count' }, 'call ' + (place + 1) + ' '), make('code', null, name), ' ', callBadge(call)),
    quoted('Arguments of ' + plain(name), call.arguments, 'arguments'),
    notes.map((note) => make('p', { class: 'note' }, note)),
    call.given === null ? null : folded('As the tool gets them', call.given, 'arguments'),
    message ? [make('h6', null, 'What the model receives'), quoted('Received', message, 'result')] : [],
    result === null ? [] : [make('h6', null, 'Answered'), quoted('Answer to ' + plain(name), result, 'result')]);
}

function turnBlock(turn, number, all) {
  const { text } = turn;
  const content = [
    !turn.user ? [] : [make('h5', null, 'The user'), quoted('Message before turn ' + number, turn.user)],
    turn.reasoning ? folded('Thinking', turn.reasoning, 'thinking') : [],
    text || !turn.calls.length ? quoted(all > 1 ? 'Text of turn ' + number : 'Answer', text) : [],
    turn.calls.map(callBlock),
  ].flat();
  if (all === 1) return part('Answer', ...content);
  const facts = [time(turn.e2e_ms), turn.ttft_ms == null ? '' : 'TTFT ' + time(turn.ttft_ms), turn.input_tokens == null ? '' : turn.input_tokens + ' tokens in',
    turn.output_tokens == null ? '' : turn.output_tokens + ' out', turn.finish_reason].filter(Boolean).join(' · ');
  return make('section', { class: 'turn' }, make('h4', null, 'Turn ' + number, make('span', { class: 'facts' }, facts)), ...content);
}

const facts = (row) => make('dl', { class: 'facts' }, page.cells.fields.flatMap((name, n) => (row[n] == null ? []
  : [make('div', null, make('dt', null, name), make('dd', null, row[n]))])));

function repeats(cell) {
  const all = slotOf(columns.prompt[cell], columns.target[cell]);
  if (all.length < 2) return null;
  return make('div', { class: 'repeats', role: 'group', 'aria-label': 'Repeats' }, all.map((one) => make('button', {
    type: 'button', 'aria-pressed': String(one === cell), class: 'v' + columns.verdict[one], click: () => showCell(one, { focus: true }),
  }, make('span', { 'aria-hidden': 'true' }, glyphOf(one) + ' '), 'r' + columns.repeat[one], make('span', { class: 'unseen' }, ' ' + wordOf(one)))));
}

function panelOf(cell) {
  const [prompt, target, change, detail] = [prompts[columns.prompt[cell]], targets[columns.target[cell]], columns.change[cell], details[cell]];
  const { before, found: parsed, row } = detail;
  const button = (label, ...by) => make('button', { type: 'button', click: () => walk(...by, { focus: false }) }, label);
  const unknown = make('p', { class: 'empty' }, '(its definition is not in config.json)');
  return [
    make('div', { class: 'bar' }, make('div', { class: 'walk', role: 'group', 'aria-label': 'Neighbours' }, button('↑ prompt', -1, 0), button('↓ prompt', 1, 0), button('← target', 0, -1), button('target →', 0, 1)),
      make('button', { type: 'button', class: 'close', click: closePanel }, 'Close', make('kbd', { 'aria-hidden': 'true' }, 'Esc'))),
    make('div', { class: 'body' },
      make('h2', { id: 'panel-title', tabindex: -1 }, make('b', null, prompt.id), ' ' + (prompt.name === prompt.id ? '' : prompt.name)),
      make('p', { class: 'of' }, target.label, make('span', null, ' · ' + suiteOf(prompt) + (prompt.category ? ' · ' + prompt.category : ''))),
      repeats(cell),
      make('p', { class: 'badges' }, verdictBadge(columns.verdict[cell]), detail.failure ? badge(worded(detail.failure)) : null,
        columns.outcome[cell] ? badge(worded(columns.outcome[cell])) : null, change ? badge(change > 0 ? '▲ better than before' : '▼ worse than before') : null),
      detail.why ? quoted('Why', detail.why, 'why') : null,
      part('Prompt', prompt.messages.length ? unfolding('Before the prompt: ' + counted(prompt.messages.length, 'message'), () => prompt.messages.flatMap(([label, text], n) =>
        [make('h5', null, label), quoted('Earlier ' + (n + 1) + ', ' + plain(label), text)])) : null, prompt.prompt ? quoted('Prompt', prompt.prompt) : unknown),
      prompt.system ? part('System', quoted('System prompt', prompt.system)) : null,
      prompt.tools ? part('Tools offered', make('p', { class: 'names' }, prompt.tools)) : null,
      ...detail.turns.map((turn, n) => turnBlock(turn, n + 1, detail.turns.length)),
      before ? part('In the baseline', make('p', null, verdictBadge(before.verdict), ' ' + time(before.e2e)), before.why ? quoted('Why', before.why, 'why') : null,
        quoted('Answer in the baseline', before.text)) : null,
      part('Rule', prompt.rule ? quoted('Validator', prompt.rule, 'arguments') : null,
        parsed ? [make('h4', null, 'What it found'), quoted('Found', parsed, 'arguments')] : [],
        prompt.world ? folded('The world of the exchange', prompt.world, 'arguments') : null),
      part('Measured', facts(row))),
  ];
}

const narrow = matchMedia('(max-width: 900px)');

function showCell(cell, { focus }) {
  const panel = byId('panel');
  open.cell = cell;
  panel.replaceChildren(...panelOf(cell));
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
  if (all.length) showCell(shown.find((cell) => columns.verdict[cell] !== PASSED) ?? shown[0], how);
}

function closePanel() {
  if (open.cell === null) return;
  open.cell = null;
  byId('panel').close();
  mark(null);
  elementOf(matrix.active.prompt, matrix.active.target)?.focus({ preventScroll: true });
}

function buildPanel() {
  document.addEventListener('keydown', (event) => {
    if (event.key === 'Escape' && open.cell !== null) { event.preventDefault(); closePanel(); }
  });
  byId('panel').addEventListener('cancel', (event) => { event.preventDefault(); closePanel(); });
}
