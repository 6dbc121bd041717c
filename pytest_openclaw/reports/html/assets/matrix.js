// Prompts by targets. Only the rows in view, and the one that has the focus, are in the document.

const ROW = 30;
const SPARE = 8;
const matrix = { items: [], shown: [], rows: new Map(), active: { prompt: 0, target: 0 }, box: null, body: null, head: null };

function promptsFound() {
  const list = [];
  for (let prompt = 0; prompt < prompts.length; prompt += 1) {
    let has = false;
    for (let target = 0; target < targets.length && !has; target += 1) has = slotOf(prompt, target).some((cell) => found[cell]);
    if (has) list.push(prompt);
  }
  return list;
}

const cellsOf = (prompt) => targets.flatMap((_, target) => slotOf(prompt, target)).filter((cell) => found[cell]);

function share(cells) {
  const judged = cells.filter((cell) => [0, 1, 3].includes(columns.verdict[cell]));
  return judged.length ? judged.filter((cell) => columns.verdict[cell] === 0).length / judged.length : 2;
}

const ORDERS = {
  missed: (cells) => share(cells),
  slow: (cells) => -Math.max(0, ...cells.map((cell) => columns.e2e[cell] || 0)),
  split: (cells) => (share(cells) > 1 ? 2 : Math.abs(share(cells) - 0.5)),
};

function ordered(list) {
  const key = ORDERS[choice.order];
  if (key) {
    const keys = new Map(list.map((prompt) => [prompt, key(cellsOf(prompt))]));
    return list.slice().sort((a, b) => keys.get(a) - keys.get(b) || a - b).map((prompt) => ({ prompt }));
  }
  const bySuite = new Map();
  for (const prompt of list) {
    const { suite } = prompts[prompt];
    if (!bySuite.has(suite)) bySuite.set(suite, []);
    bySuite.get(suite).push(prompt);
  }
  return [...bySuite].flatMap(([suite, own]) => [{ suite, n: own.length }, ...own.map((prompt) => ({ prompt }))]);
}

function refresh() {
  const n = applyFilter();
  matrix.items = ordered(promptsFound());
  matrix.shown = targets.map((_, number) => number).filter((number) => !choice.targets.size || choice.targets.has(number));
  const nPrompts = matrix.items.filter((item) => item.prompt !== undefined).length;
  byId('found').textContent = n === N
    ? N.toLocaleString('en') + (N === 1 ? ' cell, ' : ' cells, ') + nPrompts.toLocaleString('en') + (nPrompts === 1 ? ' prompt' : ' prompts')
    : n.toLocaleString('en') + ' of ' + N.toLocaleString('en') + ' cells, ' + nPrompts.toLocaleString('en') + (nPrompts === 1 ? ' prompt' : ' prompts');
  settleActive();
  drawAll();
  writeAddress();
}

function settleActive() {
  const places = matrix.items.filter((item) => item.prompt !== undefined);
  if (!places.some((item) => item.prompt === matrix.active.prompt) && places.length) matrix.active.prompt = places[0].prompt;
  if (!matrix.shown.includes(matrix.active.target) && matrix.shown.length) [matrix.active.target] = matrix.shown;
}

function drawAll() {
  matrix.rows.clear();
  matrix.body.textContent = '';
  matrix.box.style.setProperty('--columns', String(matrix.shown.length));
  matrix.box.setAttribute('aria-rowcount', String(matrix.items.length + 1));
  matrix.box.setAttribute('aria-colcount', String(matrix.shown.length + 1));
  matrix.body.style.height = matrix.items.length * ROW + 'px';
  matrix.head.textContent = '';
  const all = tallies();
  matrix.head.append(make('div', { role: 'columnheader', class: 'corner', 'aria-colindex': '1' }, 'prompt'), ...matrix.shown.map((target, place) => columnHead(target, place, all[target])));
  matrix.box.classList.toggle('nothing', !matrix.items.length);
  drawVisible();
  showHint();
}

function showHint() {
  matrix.hint.hidden = matrix.box.scrollWidth <= matrix.box.clientWidth + 1;
}

// Of the cells that are shown, how many passed on each target.
function tallies() {
  const all = targets.map(() => ({ passed: 0, judged: 0 }));
  for (let cell = 0; cell < N; cell += 1) {
    const verdict = columns.verdict[cell];
    if (found[cell] && (verdict === 0 || verdict === 1 || verdict === 3)) {
      all[columns.target[cell]].judged += 1;
      all[columns.target[cell]].passed += verdict === 0 ? 1 : 0;
    }
  }
  return all;
}

function columnHead(target, place, { passed, judged }) {
  const { provider, model, level, label } = targets[target];
  return make('div', { role: 'columnheader', 'aria-colindex': String(place + 2), title: plain(label) },
    make('span', { class: 'provider' }, provider + '/'), make('span', { class: 'model' }, model + (level ? '@' + level : '')),
    make('span', { class: 'passed' }, judged ? passed + '/' + judged + ' passed' : 'nothing judged'));
}

function wanted() {
  const first = Math.max(0, Math.floor(matrix.box.scrollTop / ROW) - SPARE);
  const last = Math.min(matrix.items.length, Math.ceil((matrix.box.scrollTop + matrix.box.clientHeight) / ROW) + SPARE);
  const numbers = new Set();
  for (let n = first; n < last; n += 1) numbers.add(n);
  const active = placeOf(matrix.active.prompt);
  if (active >= 0) numbers.add(active);
  return numbers;
}

const placeOf = (prompt) => matrix.items.findIndex((item) => item.prompt === prompt);

function drawVisible() {
  const numbers = wanted();
  for (const [number, row] of matrix.rows) {
    if (!numbers.has(number)) { row.remove(); matrix.rows.delete(number); }
  }
  const fresh = document.createDocumentFragment();
  for (const number of numbers) {
    if (!matrix.rows.has(number)) {
      const row = drawRow(number);
      matrix.rows.set(number, row);
      fresh.append(row);
    }
  }
  matrix.body.append(fresh);
}

function drawRow(number) {
  const item = matrix.items[number];
  const row = make('div', { role: 'row', 'aria-rowindex': String(number + 2), class: item.prompt === undefined ? 'row suite' : 'row' });
  row.style.top = number * ROW + 'px';
  if (item.prompt === undefined) {
    row.append(make('div', { role: 'rowheader', 'aria-colindex': '1', 'aria-colspan': String(matrix.shown.length + 1) },
      make('span', null, item.suite, make('span', null, ' ' + item.n + (item.n === 1 ? ' prompt' : ' prompts')))));
    return row;
  }
  const prompt = prompts[item.prompt];
  row.append(make('div', { role: 'rowheader', 'aria-colindex': '1', title: plain(nameOf(prompt)) },
    make('b', null, prompt.id), prompt.name && prompt.name !== prompt.id ? make('span', null, ' ' + prompt.name) : null),
  ...matrix.shown.map((target, place) => drawCell(item.prompt, target, place)));
  return row;
}

function drawCell(prompt, target, place) {
  const all = slotOf(prompt, target);
  const cells = all.filter((cell) => found[cell]);
  const isActive = prompt === matrix.active.prompt && target === matrix.active.target;
  const { word, glyph, kind } = summaryOf(cells);
  const value = valueOf(cells);
  const where = nameOf(prompts[prompt]) + ', ' + targets[target].label + ': ';
  const said = cells.length ? word + (value ? ', ' + value : '') : all.length ? 'filtered out' : 'not asked';
  const changed = changeOf(cells);
  const element = make('div', {
    role: 'gridcell', title: value ? plain(value) : null, class: 'cell ' + (cells.length ? kind : 'none') + (open.cell !== null && all.includes(open.cell) ? ' open' : ''),
    tabindex: isActive ? '0' : '-1', 'aria-colindex': String(place + 2), 'aria-label': plain(where + said + (changed ? ', ' + changed.word : '')),
    'data-prompt': String(prompt), 'data-target': String(target),
  });
  if (cells.length) {
    element.append(make('span', { class: 'glyph', 'aria-hidden': 'true' }, glyph));
    if (value) element.append(make('span', { class: 'value', 'aria-hidden': 'true' }, value));
    if (changed) element.append(make('span', { class: 'change', 'aria-hidden': 'true' }, changed.glyph));
  }
  return element;
}

function summaryOf(cells) {
  if (!cells.length) return { word: '', glyph: '', kind: 'none' };
  const kinds = unique(cells.map((cell) => columns.verdict[cell]));
  if (kinds.length === 1) {
    const { word, glyph } = VERDICTS[kinds[0]];
    return { word: cells.length > 1 ? word + ' ' + cells.length + ' times' : word, glyph: cells.length > 1 ? glyph + cells.length : glyph, kind: 'v' + kinds[0] };
  }
  const passed = cells.filter((cell) => columns.verdict[cell] === 0).length;
  return { word: passed + ' of ' + cells.length + ' passed', glyph: passed + '/' + cells.length, kind: passed ? 'mixed' : 'v1' };
}

function valueOf(cells) {
  if (!cells.length || !choice.tell) return '';
  if (choice.tell === 'why') return unique(cells.map((cell) => page.reasons[columns.why[cell]])).filter(Boolean).join('; ');
  if (choice.tell === 'outcome') return unique(cells.map((cell) => worded(columns.outcome[cell]))).filter(Boolean).join(', ');
  const times = cells.map((cell) => (choice.tell === 'ttft' ? columns.ttft : columns.e2e)[cell]).filter((ms) => ms !== null).sort((a, b) => a - b);
  return times.length ? time(times[Math.floor((times.length - 1) / 2)]) : '';
}

function changeOf(cells) {
  const sum = cells.reduce((total, cell) => total + (columns.change[cell] || 0), 0);
  if (!sum) return null;
  return sum > 0 ? { glyph: '▲', word: 'better than the baseline' } : { glyph: '▼', word: 'worse than the baseline' };
}

function elementOf(prompt, target) {
  const row = matrix.rows.get(placeOf(prompt));
  return row ? row.querySelector('[data-target="' + target + '"]') : null;
}

function activate(prompt, target, { focus }) {
  const before = elementOf(matrix.active.prompt, matrix.active.target);
  if (before) before.setAttribute('tabindex', '-1');
  matrix.active = { prompt, target };
  reveal(placeOf(prompt));
  drawVisible();
  const element = elementOf(prompt, target);
  element.setAttribute('tabindex', '0');
  if (focus) element.focus({ preventScroll: true });
  element.scrollIntoView({ block: 'nearest', inline: 'nearest', behavior: 'instant' });
}

function reveal(place) {
  const { box, head } = matrix;
  const room = box.clientHeight - head.offsetHeight;
  const top = place * ROW;
  if (top < box.scrollTop) box.scrollTop = top;
  else if (top + ROW > box.scrollTop + room) box.scrollTop = top + ROW - room;
}

function step(rows, cols) {
  const places = matrix.items.map((item) => item.prompt).filter((prompt) => prompt !== undefined);
  const row = Math.min(places.length - 1, Math.max(0, places.indexOf(matrix.active.prompt) + rows));
  const col = Math.min(matrix.shown.length - 1, Math.max(0, matrix.shown.indexOf(matrix.active.target) + cols));
  return { prompt: places[row], target: matrix.shown[col] };
}

const FAR = 1e9;
const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], PageUp: [-15, 0], PageDown: [15, 0], Home: [0, -FAR], End: [0, FAR] };

function onKey(event) {
  if (!event.target.dataset.prompt || event.altKey) return;
  if (event.key === 'Enter' || event.key === ' ') {
    event.preventDefault();
    openSlot(matrix.active.prompt, matrix.active.target, { focus: true });
    return;
  }
  let by = STEPS[event.key];
  if (!by) return;
  if (event.ctrlKey && by[1]) by = [by[1], by[1]];
  event.preventDefault();
  const { prompt, target } = step(...by);
  activate(prompt, target, { focus: true });
  if (open.cell !== null) openSlot(prompt, target, { focus: false });
}

function onClick(event) {
  const element = event.target.closest('[data-prompt]');
  if (!element) return;
  const [prompt, target] = [Number(element.dataset.prompt), Number(element.dataset.target)];
  activate(prompt, target, { focus: true });
  openSlot(prompt, target, { focus: false });
}

function buildMatrix() {
  matrix.box = byId('grid');
  matrix.box.setAttribute('role', 'grid');
  matrix.box.setAttribute('aria-label', 'Prompts by targets');
  matrix.head = make('div', { role: 'row', class: 'head', 'aria-rowindex': '1' });
  matrix.body = make('div', { role: 'rowgroup', class: 'rows' });
  matrix.hint = make('p', { class: 'hint', hidden: true }, 'More targets: scroll sideways →');
  matrix.box.before(matrix.hint);
  matrix.box.append(make('div', { role: 'rowgroup', class: 'heads' }, matrix.head), matrix.body);
  let drawing = 0;
  matrix.box.addEventListener('scroll', () => {
    if (!drawing) drawing = requestAnimationFrame(() => { drawing = 0; drawVisible(); });
  }, { passive: true });
  new ResizeObserver(() => { drawVisible(); showHint(); }).observe(matrix.box);
  matrix.box.addEventListener('keydown', onKey);
  matrix.box.addEventListener('click', onClick);
}
