// Which cells are shown. A cell is found if it fits every choice; without a choice all fit.

const DEFAULTS = { view: '', text: '', suite: '', category: '', outcome: '', change: '', order: 'suite', tell: 'why' };
const choice = { ...DEFAULTS, verdicts: new Set(), targets: new Set() };
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

// Prompts of which the targets passed different shares.
function splitPrompts() {
  return new Set(prompts.map((_, prompt) => prompt).filter((prompt) =>
    new Set(targets.map((_, target) => share(slotOf(prompt, target))).filter((one) => one <= 1)).size > 1));
}

function applyFilter() {
  const { has, inPrompt, allowed } = promptFits();
  const split = choice.view === 'differs' ? splitPrompts() : null;
  let n = 0;
  for (let cell = 0; cell < N; cell += 1) {
    const prompt = columns.prompt[cell];
    const fits = allowed[prompt]
      && (!choice.verdicts.size || choice.verdicts.has(columns.verdict[cell]))
      && (!choice.targets.size || choice.targets.has(columns.target[cell]))
      && (!choice.outcome || columns.outcome[cell] === choice.outcome)
      && (!choice.change || String(columns.change[cell]) === choice.change)
      && (choice.view !== 'changed' || columns.change[cell])
      && (!split || split.has(prompt))
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
    type: 'button', class: 'verdict v' + code, 'data-verdict': String(code), on: { click: () => toggle(choice.verdicts, code) },
  }, make('span', { 'aria-hidden': 'true', class: 'glyph' }, glyph), ' ' + word + ' ', make('b', null, counts[code].toLocaleString('en'))) : null));
  return make('div', { class: 'verdicts', role: 'group', 'aria-label': 'Verdict' }, buttons);
}

function toggle(set, value) {
  if (set.has(value)) set.delete(value);
  else set.add(value);
  showChoice();
  refresh();
}

// The controls, as the choice is.
function showChoice() {
  for (const button of byId('views').children) button.setAttribute('aria-pressed', String(button.dataset.view === choice.view));
  for (const field of byId('filter').querySelectorAll('select, input[type=search]')) field.value = choice[field.name];
  for (const button of byId('filter').querySelectorAll('[data-verdict]')) button.setAttribute('aria-pressed', String(choice.verdicts.has(Number(button.dataset.verdict))));
  for (const box of byId('filter').querySelectorAll('input[type=checkbox]')) box.checked = choice.targets.has(Number(box.value));
  for (const summary of byId('filter').querySelectorAll('summary')) summary.textContent = choice.targets.size ? choice.targets.size + ' of ' + targets.length + ' targets' : 'All targets';
}

function buildViews() {
  const views = [['', 'All cells'], page.baseline === null ? null : ['changed', 'Changed since the baseline'], targets.length > 1 ? ['differs', 'Differs between models'] : null].filter(Boolean);
  if (views.length > 1) {
    byId('views').append(...views.map(([view, word]) => make('button', { type: 'button', 'data-view': view, on: { click: () => {
      choice.view = view;
      showChoice();
      refresh();
    } } }, word)));
  }
}

function targetBoxes() {
  if (targets.length < 2) return null;
  const summary = make('summary', null, 'All targets');
  const boxes = targets.map((target, number) => {
    const box = make('input', { type: 'checkbox', value: String(number), on: { change: () => toggle(choice.targets, number) } });
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

// Make these choices, and no others.
function choose(wanted) {
  Object.assign(choice, DEFAULTS, wanted, { verdicts: wanted.verdicts || new Set(), targets: wanted.targets || new Set() });
  showChoice();
  refresh();
}

function buildFilter() {
  buildViews();
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
    select('tell', 'Cells tell', pairs([['why', 'why it failed'], ['outcome', 'tool outcome'], ['time', 'time'], ['ttft', 'first token'], ['', 'verdict alone']])),
    make('button', { type: 'reset' }, 'Reset'),
    verdictButtons(),
  ].filter(Boolean));
  form.addEventListener('submit', (event) => event.preventDefault());
  form.addEventListener('reset', (event) => {
    event.preventDefault();
    choose({});
  });
  document.addEventListener('keydown', (event) => {
    if (event.key === '/' && !event.ctrlKey && !event.metaKey && !/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) {
      event.preventDefault();
      search.focus();
    }
  });
}
