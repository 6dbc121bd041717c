// Which cells are shown. A cell is found if it fits every choice; without a choice all fit.

const choice = { text: '', suite: '', category: '', outcome: '', change: '', verdicts: new Set(), targets: new Set(), order: 'suite', tell: 'time' };
const found = new Uint8Array(N).fill(1);
const lowered = new Map();

function lower(number) {
  if (!lowered.has(number)) lowered.set(number, textOf(number).toLowerCase());
  return lowered.get(number);
}

// A text that stands in many cells is searched once.
function searcher(query) {
  const hits = new Map();
  return (number) => {
    if (!number) return false;
    let hit = hits.get(number);
    if (hit === undefined) {
      hit = lower(number).includes(query);
      hits.set(number, hit);
    }
    return hit;
  };
}

function promptFits() {
  const query = choice.text.toLowerCase();
  const has = searcher(query);
  const inPrompt = prompts.map((prompt) => !query
    || (prompt.id + ' ' + prompt.name).toLowerCase().includes(query) || has(prompt.prompt) || has(prompt.system) || prompt.messages.some(([, text]) => has(text)));
  const allowed = prompts.map((prompt) => (!choice.suite || prompt.suite === choice.suite)
    && (!choice.category || (prompt.category || '') === choice.category));
  return { has, inPrompt, allowed };
}

function applyFilter() {
  const { has, inPrompt, allowed } = promptFits();
  let n = 0;
  for (let cell = 0; cell < N; cell += 1) {
    const prompt = columns.prompt[cell];
    const fits = allowed[prompt]
      && (!choice.verdicts.size || choice.verdicts.has(columns.verdict[cell]))
      && (!choice.targets.size || choice.targets.has(columns.target[cell]))
      && (!choice.outcome || columns.outcome[cell] === choice.outcome)
      && (!choice.change || String(columns.change[cell]) === choice.change)
      && (inPrompt[prompt] || columns.texts[cell].some(has));
    found[cell] = fits ? 1 : 0;
    n += found[cell];
  }
  return n;
}

function options(values, all, name) {
  return pairs([['', all], ...values.map((value) => [value, name(value)])]);
}

function select(name, label, entries) {
  if (entries.length < 3 && name !== 'order' && name !== 'tell' && name !== 'change') return null;
  const element = make('select', { name, on: { change: () => { choice[name] = element.value; refresh(); } } }, entries);
  return make('label', null, make('span', null, label), element);
}

function pairs(entries) {
  return entries.map(([value, label]) => {
    const option = make('option', null, label);
    option.value = value;
    return option;
  });
}

function verdictButtons() {
  const counts = VERDICTS.map((_, code) => columns.verdict.filter((one) => one === code).length);
  const buttons = VERDICTS.map(({ word, glyph }, code) => (counts[code] ? make('button', {
    type: 'button', class: 'verdict v' + code, 'aria-pressed': 'false',
    on: { click: (event) => toggle(choice.verdicts, code, event.currentTarget) },
  }, make('span', { 'aria-hidden': 'true', class: 'glyph' }, glyph), ' ' + word + ' ', make('b', null, counts[code].toLocaleString('en'))) : null));
  return make('div', { class: 'verdicts', role: 'group', 'aria-label': 'Verdict' }, buttons);
}

function toggle(set, value, button) {
  if (set.has(value)) set.delete(value);
  else set.add(value);
  button.setAttribute('aria-pressed', String(set.has(value)));
  refresh();
}

function targetBoxes() {
  if (targets.length < 2) return null;
  const summary = make('summary', null, 'All targets');
  const boxes = targets.map((target, number) => {
    const box = make('input', { type: 'checkbox' });
    box.addEventListener('change', () => {
      if (box.checked) choice.targets.add(number);
      else choice.targets.delete(number);
      summary.textContent = choice.targets.size ? choice.targets.size + ' of ' + targets.length + ' targets' : 'All targets';
      refresh();
    });
    return make('label', null, box, ' ' + target.label);
  });
  const details = make('details', { class: 'choose' }, summary, make('div', { class: 'boxes' }, boxes));
  document.addEventListener('click', (event) => { if (!details.contains(event.target)) details.open = false; });
  details.addEventListener('keydown', (event) => {
    if (event.key === 'Escape' && details.open) { details.open = false; summary.focus(); event.stopPropagation(); }
  });
  return make('div', { class: 'label' }, make('span', null, 'Target'), details);
}

const unique = (values) => [...new Set(values)];

function buildFilter() {
  const search = make('input', { type: 'search', name: 'text', placeholder: 'prompt, answer, call, violation', autocomplete: 'off', spellcheck: 'false' });
  let waiting = 0;
  search.addEventListener('input', () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => { choice.text = search.value; refresh(); }, 120);
  });
  const form = byId('filter');
  form.append(...[
    make('label', { class: 'search' }, make('span', null, 'Search'), search),
    targetBoxes(),
    select('suite', 'Suite', options(unique(prompts.map((prompt) => prompt.suite)), 'All suites', (suite) => suiteOf({ suite }))),
    select('category', 'Category', options(unique(prompts.map((prompt) => prompt.category || '')).filter(Boolean).sort(), 'All categories', (category) => category)),
    select('outcome', 'Tool outcome', options(unique(columns.outcome).filter(Boolean).sort(), 'Any', worded)),
    page.baseline === null ? null : select('change', 'Since the baseline', pairs([['', 'Any'], ['-1', 'worse'], ['1', 'better'], ['0', 'the same']])),
    select('order', 'Order', pairs([['suite', 'as in the suites'], ['missed', 'most missed first'], ['slow', 'slowest first'], ['split', 'targets disagree most']])),
    select('tell', 'Cells tell', pairs([['time', 'time'], ['ttft', 'first token'], ['outcome', 'tool outcome'], ['', 'verdict alone']])),
    make('button', { type: 'reset' }, 'Reset'),
    verdictButtons(),
  ].filter(Boolean));
  form.addEventListener('submit', (event) => event.preventDefault());
  form.addEventListener('reset', () => {
    Object.assign(choice, { text: '', suite: '', category: '', outcome: '', change: '', order: 'suite', tell: 'time' });
    choice.verdicts.clear();
    choice.targets.clear();
    for (const button of form.querySelectorAll('[aria-pressed]')) button.setAttribute('aria-pressed', 'false');
    for (const summary of form.querySelectorAll('summary')) summary.textContent = 'All targets';
    refresh();
  });
  document.addEventListener('keydown', (event) => {
    if (event.key === '/' && !event.ctrlKey && !event.metaKey && !/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) {
      event.preventDefault();
      search.focus();
    }
  });
}
