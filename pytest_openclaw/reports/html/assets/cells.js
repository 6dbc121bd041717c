// The cells of the run: what is chosen in the form, and a matrix of prompts by targets that shows it.

const { columns, prompts, targets } = page.cells;
const N = columns.prompt.length;
const PASSED = 0;
const JUDGED = [0, 1, 3];
const VERDICTS = [['passed', '✓'], ['missed', '✗'], ['not judged', '•'], ['no words', '∅'], ['fault', '!'], ['unavailable', '–']];
const wordOf = (cell) => VERDICTS[columns.verdict[cell]][0];
const glyphOf = (cell) => VERDICTS[columns.verdict[cell]][1];
const lookOf = (cell) => (columns.harm[cell] ? 'harmful' : 'v' + columns.verdict[cell]);

const details = JSON.parse(document.querySelector('script.details').textContent);

function time(ms) {
  if (ms === null || ms === undefined) return '–';
  if (ms < 999.5) return Math.round(ms) + ' ms';
  return (ms / 1000).toFixed(ms < 99950 ? 1 : 0) + ' s';
}

// Cells by prompt and target, repeat by repeat.
const slots = new Map();
const slotOf = (prompt, target) => slots.get(prompt * targets.length + target) || [];
for (let cell = 0; cell < N; cell += 1) {
  const key = columns.prompt[cell] * targets.length + columns.target[cell];
  slots.set(key, [...(slots.get(key) || []), cell].sort((a, b) => columns.repeat[a] - columns.repeat[b]));
}
const nameOf = ({ id, name }) => (name && name !== id ? id + ' ' + name : id);
const suiteOf = (prompt) => prompt.suite.replace(/^.*\//, '');

// Of some cells the share that passed; above 1 if none was judged.
function share(cells) {
  const judged = cells.filter((cell) => JUDGED.includes(columns.verdict[cell]));
  return judged.length ? judged.filter((cell) => columns.verdict[cell] === PASSED).length / judged.length : 2;
}

const form = byId('filter');
const found = new Uint8Array(N).fill(1);

// The default of every field is the empty text.
function choice() {
  const data = new FormData(form);
  return { ...Object.fromEntries(data), verdicts: new Set(data.getAll('verdict')), targets: new Set(data.getAll('target')) };
}

function select(name, label, entries) {
  return entries.length < 2 ? null : make('label', null, make('span', null, label), make('select', { name }, entries.map(([value, text]) => make('option', { value }, text))));
}

function boxes(name, entries) {
  return entries.map(([value, look, ...label]) => make('label', { class: look }, make('input', { type: 'checkbox', name, value }), ...label));
}

function buildFilter() {
  const all = (label, values, say) => [['', label], ...unique(values).filter(Boolean).sort().map((value) => [value, say(value)])];
  const counts = VERDICTS.map((_, code) => columns.verdict.filter((one) => one === code).length);
  const verdicts = VERDICTS.map(([word, glyph], code) => [word, 'verdict v' + code,
    make('span', { 'aria-hidden': 'true', class: 'glyph' }, glyph), ' ' + word + ' ', make('b', null, counts[code].toLocaleString('en'))]);
  const harmful = columns.harm.filter(Boolean).length;
  if (harmful) verdicts.unshift(['yes', 'verdict harmful', make('span', { 'aria-hidden': 'true', class: 'glyph' }, '⚠'), ' did harm ', make('b', null, String(harmful))]);
  const views = [['', 'all cells'], ['changed', 'changed since the baseline'], ['differs', 'differs between targets'], ['noted', 'with a note']];
  form.append(...[
    make('label', { class: 'search' }, make('span', null, 'Search'),
      make('input', { type: 'search', name: 'text', placeholder: 'prompt, answer, call, violation', autocomplete: 'off', spellcheck: 'false' })),
    targets.length < 2 ? null : make('details', { class: 'choose' }, make('summary', null, 'Targets'),
      make('div', { class: 'boxes' }, boxes('target', targets.map(({ label }) => [label, null, ' ' + label])))),
    select('view', 'Show', views.filter(([view]) => ({ changed: page.cells.baseline !== null, differs: targets.length > 1 })[view] ?? true)),
    select('suite', 'Suite', all('all suites', prompts.map(({ suite }) => suite), (suite) => suiteOf({ suite }))),
    select('category', 'Category', all('all categories', prompts.map(({ category }) => category), String)),
    select('outcome', 'Tool outcome', all('any', columns.outcome, worded)),
    select('order', 'Order', [['', 'as in the suites'], ['missed', 'most missed first'], ['slow', 'slowest first']]),
    page.cells.texts ? make('div', { class: 'switch' }, boxes('answers', [['shown', null, ' Answers in the cells']])) : null,
    make('button', { type: 'reset' }, 'Reset'),
    make('div', { class: 'verdicts', role: 'group', 'aria-label': 'Verdict' }, boxes('harm', verdicts.splice(0, harmful ? 1 : 0)),
      boxes('verdict', verdicts.filter((_, code) => counts[code]))),
  ].filter(Boolean));
  let waiting = 0;
  form.addEventListener('input', ({ target }) => {
    clearTimeout(waiting);
    if (target.name === 'text') waiting = setTimeout(refresh, 100);
    else refresh();
  }, true);
  form.addEventListener('reset', () => setTimeout(refresh));
  form.addEventListener('submit', (event) => event.preventDefault());
  document.addEventListener('keydown', (event) => {
    if (event.key === '/' && !event.ctrlKey && !event.metaKey && !/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) {
      event.preventDefault();
      form.elements.text.focus();
    }
  });
}

const textsIn = (value) => (typeof value === 'string' ? [value] : value && typeof value === 'object' ? Object.values(value).flatMap(textsIn) : []);
const has = (value, query) => textsIn(value).some((text) => text.toLowerCase().includes(query));

function applyFilter(wanted) {
  const query = wanted.text.toLowerCase();
  const fitting = prompts.map((prompt, number) => (!wanted.suite || prompt.suite === wanted.suite)
    && (!wanted.category || prompt.category === wanted.category)
    // Prompts of which the targets passed different shares.
    && (wanted.view !== 'differs' || unique(targets.map((_, target) => share(slotOf(number, target))).filter((one) => one <= 1)).length > 1));
  const asked = prompts.map(({ id, name, prompt, system, messages }) => !query || has([id + ' ' + name, prompt, system, messages], query));
  for (let cell = 0; cell < N; cell += 1) {
    const prompt = columns.prompt[cell];
    found[cell] = Number(fitting[prompt]
      && (!wanted.verdicts.size || wanted.verdicts.has(wordOf(cell)))
      && (!wanted.targets.size || wanted.targets.has(targets[columns.target[cell]].label))
      && (!wanted.outcome || columns.outcome[cell] === wanted.outcome)
      && (!wanted.harm || columns.harm[cell])
      && (wanted.view !== 'changed' || Boolean(columns.change[cell]))
      && (wanted.view !== 'noted' || notes.has(cellName(cell)))
      && (asked[prompt] || has([details[cell].why, details[cell].turns, notes.get(cellName(cell))], query)));
  }
}

// What is chosen is in the address, so that it can be sent: #view=differs&verdict=missed&cell=suite.toml::P1[lab/a]
const READABLE = { '%2F': '/', '%3A': ':', '%40': '@', '%2C': ',' };
const encoded = (text) => encodeURIComponent(text).replace(/%2F|%3A|%40|%2C/g, (code) => READABLE[code]);

const isRepeated = (cell) => slotOf(columns.prompt[cell], columns.target[cell]).length > 1 || columns.repeat[cell] > 1;
const slotName = (cell) => prompts[columns.prompt[cell]].id + (isRepeated(cell) ? '-r' + columns.repeat[cell] : '');

function cellName(cell) {
  const prompt = prompts[columns.prompt[cell]];
  return prompt.suite + '::' + prompt.id + '[' + targets[columns.target[cell]].label + ']' + (isRepeated(cell) ? '-r' + columns.repeat[cell] : '');
}

function writeAddress() {
  const words = [...new FormData(form)].filter(([, value]) => value);
  if (open.cell !== null) words.push(['cell', cellName(open.cell)]);
  if (open.cell !== null && open.other !== null) words.push(['with', targets[open.other].label]);
  const text = words.map(([name, value]) => name + '=' + encoded(value)).join('&');
  // A link to a section stays, as long as nothing is chosen.
  if (text || location.hash.includes('=')) history.replaceState(null, '', '#' + text);
}

function readAddress() {
  const words = new URLSearchParams(location.hash.slice(1));
  if (!location.hash.includes('=') && matrix.prompts.length) return;
  form.reset();
  for (const field of form.elements) {
    if (field.type === 'checkbox') field.checked = words.getAll(field.name).includes(field.value);
    else if (field.name && words.has(field.name)) field.value = words.get(field.name);
  }
  const cell = columns.prompt.findIndex((_, number) => cellName(number) === words.get('cell'));
  const other = targets.findIndex(({ label }) => label === words.get('with'));
  open.other = other < 0 ? null : other;
  refresh();
  if (location.hash.includes('=')) byId('cells').scrollIntoView({ behavior: 'instant' });
  if (cell < 0) { closePanel(); return; }
  if (elementOf(columns.prompt[cell], columns.target[cell])) activate(columns.prompt[cell], columns.target[cell], { focus: false });
  showCell(cell, { focus: true });
}

const matrix = { prompts: [], shown: [], active: { prompt: 0, target: 0 }, box: byId('grid') };
const elementOf = (prompt, target) => matrix.box.querySelector('[data-prompt="' + prompt + '"][data-target="' + target + '"]');

const ORDERS = {
  missed: share,
  slow: (cells) => -Math.max(0, ...cells.map((cell) => columns.e2e[cell] || 0)),
};

// Prompts in their order, with the headings of suites where that is the suites' order.
function rowsOf(order) {
  const cellsOf = (prompt) => targets.flatMap((_, target) => slotOf(prompt, target)).filter((cell) => found[cell]);
  const list = prompts.map((_, prompt) => ({ prompt, cells: cellsOf(prompt) })).filter(({ cells }) => cells.length);
  if (ORDERS[order]) return list.map((item) => ({ ...item, key: ORDERS[order](item.cells) })).sort((a, b) => a.key - b.key || a.prompt - b.prompt);
  return unique(list.map(({ prompt }) => prompts[prompt].suite)).flatMap((suite) => {
    const own = list.filter(({ prompt }) => prompts[prompt].suite === suite);
    return [{ suite, n: own.length }, ...own];
  });
}

function refresh() {
  const wanted = choice();
  applyFilter(wanted);
  const rows = rowsOf(wanted.order);
  matrix.prompts = rows.map(({ prompt }) => prompt).filter((prompt) => prompt !== undefined);
  matrix.shown = targets.map((_, number) => number).filter((number) => !wanted.targets.size || wanted.targets.has(targets[number].label));
  const { prompt, target } = matrix.active;
  matrix.active = { prompt: matrix.prompts.includes(prompt) ? prompt : matrix.prompts[0], target: matrix.shown.includes(target) ? target : matrix.shown[0] };
  const n = found.reduce((sum, one) => sum + one, 0);
  byId('found').textContent = (n === N ? '' : n.toLocaleString('en') + ' of ') + counted(N, 'cell') + ', ' + counted(matrix.prompts.length, 'prompt');
  matrix.box.style.setProperty('--columns', String(matrix.shown.length));
  matrix.box.classList.toggle('excerpts', Boolean(wanted.answers));
  matrix.box.setAttribute('aria-rowcount', String(rows.length + 1));
  matrix.box.setAttribute('aria-colcount', String(matrix.shown.length + 1));
  matrix.box.replaceChildren(
    make('div', { role: 'rowgroup', class: 'heads' }, make('div', { role: 'row', class: 'head', 'aria-rowindex': 1 },
      make('div', { role: 'columnheader', class: 'corner', 'aria-colindex': 1 }, 'prompt'), matrix.shown.map(columnHead))),
    make('div', { role: 'rowgroup', class: 'rows' }, rows.map((row, number) => drawRow(row, number + 2, wanted))));
  writeAddress();
}

function columnHead(target, place) {
  const { provider, model, level, label } = targets[target];
  const judged = matrix.prompts.flatMap((prompt) => slotOf(prompt, target)).filter((cell) => found[cell] && JUDGED.includes(columns.verdict[cell]));
  const passed = judged.filter((cell) => columns.verdict[cell] === PASSED).length;
  const harmful = matrix.prompts.flatMap((prompt) => slotOf(prompt, target)).filter((cell) => found[cell] && columns.harm[cell]).length;
  return make('div', { role: 'columnheader', 'aria-colindex': place + 2, title: plain(label) },
    make('span', { class: 'provider' }, provider + '/'), make('span', { class: 'model' }, model + (level ? '@' + level : '')),
    make('span', { class: 'passed' }, judged.length ? passed + '/' + judged.length + ' passed' : 'nothing judged'),
    harmful ? make('span', { class: 'badge harmful' }, harmful + ' did harm') : null);
}

function drawRow({ prompt, suite, n }, index, wanted) {
  if (suite) {
    return make('div', { role: 'row', 'aria-rowindex': index, class: 'row suite' },
      make('div', { role: 'rowheader', 'aria-colindex': 1, 'aria-colspan': matrix.shown.length + 1 }, make('span', null, suite, make('span', null, ' ' + counted(n, 'prompt')))));
  }
  const { id, name } = prompts[prompt];
  return make('div', { role: 'row', 'aria-rowindex': index, class: 'row' },
    make('div', { role: 'rowheader', 'aria-colindex': 1, title: plain(nameOf(prompts[prompt])) }, make('b', null, id), name && name !== id ? make('span', null, ' ' + name) : null),
    matrix.shown.map((target, place) => drawCell(prompt, target, place, wanted)));
}

function drawCell(prompt, target, place, { order, answers }) {
  const all = slotOf(prompt, target);
  const cells = all.filter((cell) => found[cell]);
  const { word, glyph, look } = summaryOf(cells, all);
  const value = valueOf(cells, order);
  const text = answers ? unique(cells.map(answerOf)).filter(Boolean).join(' … ') : '';
  const change = cells.reduce((sum, cell) => sum + (columns.change[cell] || 0), 0);
  const said = [word, cells.some((cell) => columns.harm[cell]) ? 'did harm' : '', value, change ? (change > 0 ? 'better' : 'worse') + ' than the baseline' : ''].filter(Boolean).join(', ');
  const isActive = prompt === matrix.active.prompt && target === matrix.active.target;
  const hidden = (name, text) => (text ? make('span', { class: name, 'aria-hidden': 'true' }, text) : null);
  return make('div', {
    role: 'gridcell', title: plain(cells.map((cell) => columns.why[cell]).find(Boolean) || value) || null, class: 'cell ' + look + (all.includes(open.cell) ? ' open' : ''), tabindex: isActive ? 0 : -1,
    'aria-colindex': place + 2, 'aria-label': plain(nameOf(prompts[prompt]) + ', ' + targets[target].label + ': ' + said), 'data-prompt': prompt, 'data-target': target,
  }, hidden('glyph', glyph), hidden('harm', cells.some((cell) => columns.harm[cell]) ? 'harm' : ''), hidden('value', value),
  hidden('change', change ? (change > 0 ? '▲' : '▼') : ''), hidden('note', cells.some((cell) => notes.has(cellName(cell))) ? '✎' : ''), hidden('excerpt', text));
}

function summaryOf(cells, all) {
  const n = cells.length;
  if (!n) return { word: all.length ? 'filtered out' : 'not asked', glyph: '', look: 'none' };
  if (unique(cells.map(wordOf)).length === 1) {
    return { word: wordOf(cells[0]) + (n > 1 ? ' ' + n + ' times' : ''), glyph: glyphOf(cells[0]) + (n > 1 ? n : ''), look: lookOf(cells.find((cell) => columns.harm[cell]) ?? cells[0]) };
  }
  const passed = cells.filter((cell) => columns.verdict[cell] === PASSED).length;
  return { word: passed + ' of ' + n + ' passed', glyph: passed + '/' + n, look: cells.some((cell) => columns.harm[cell]) ? 'harmful' : passed ? 'mixed' : 'v1' };
}

// How the tool use ended, and the call; without tools, the reason.
function storyOf(cell) {
  const [outcome, call, why] = [columns.outcome[cell], columns.call[cell], columns.why[cell]];
  if (!outcome || !JUDGED.includes(columns.verdict[cell])) return why;
  const ended = outcome === 'valid' || outcome === 'restrained' ? why : worded(outcome);
  return [ended, call || (columns.harm[cell] ? why : '')].filter(Boolean).join(' · ');
}

const answerOf = (cell) => details[cell].turns.at(-1).text.trim().slice(0, 200).replace(/\s+/g, ' ');

function valueOf(cells, order) {
  if (order !== 'slow') return unique(cells.map(storyOf)).filter(Boolean).join('; ');
  const times = cells.map((cell) => columns.e2e[cell]).filter((ms) => ms !== null).sort((a, b) => a - b);
  return times.length ? time(times[Math.floor((times.length - 1) / 2)]) : '';
}

function activate(prompt, target, { focus }) {
  elementOf(matrix.active.prompt, matrix.active.target)?.setAttribute('tabindex', '-1');
  matrix.active = { prompt, target };
  const element = elementOf(prompt, target);
  element.setAttribute('tabindex', '0');
  if (focus) element.focus({ preventScroll: true });
  element.scrollIntoView({ block: 'nearest', inline: 'nearest', behavior: 'instant' });
}

const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], PageUp: [-15, 0], PageDown: [15, 0], Home: [0, -1e9], End: [0, 1e9] };

// Go so many rows and columns further; an open cell follows.
function walk(rows, cols, how) {
  const within = (list, value, by) => list[Math.min(list.length - 1, Math.max(0, list.indexOf(value) + by))];
  const prompt = within(matrix.prompts, matrix.active.prompt, rows);
  const target = within(matrix.shown, matrix.active.target, cols);
  activate(prompt, target, how);
  if (open.cell !== null) openSlot(prompt, target, { focus: !how.focus });
}

function buildMatrix() {
  matrix.box.addEventListener('keydown', (event) => {
    if (!event.target.dataset.prompt || event.altKey) return;
    const by = STEPS[event.key];
    const { prompt, target } = matrix.active;
    if (by) walk(...(event.ctrlKey && by[1] ? [by[1], by[1]] : by), { focus: true });
    else if (event.key === 'Enter' || event.key === ' ') openSlot(prompt, target, { focus: true });
    else return;
    event.preventDefault();
  });
  matrix.box.addEventListener('click', (event) => {
    const element = event.target.closest('[data-prompt]');
    if (!element) return;
    const [prompt, target] = [Number(element.dataset.prompt), Number(element.dataset.target)];
    activate(prompt, target, { focus: true });
    openSlot(prompt, target, { focus: false });
  });
}

function buildCells() {
  buildFilter();
  byId('filters').open = !narrow.matches;
  wide.observe(matrix.box);
  buildMatrix();
  buildPanel();
  readAddress();
  addEventListener('hashchange', readAddress);
}
