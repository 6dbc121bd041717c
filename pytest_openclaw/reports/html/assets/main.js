// The page from top to bottom.

// Notes under the same word are together, and does not fill the page.
const SHOWN = 5;

function notes(list) {
  const byWord = new Map();
  for (const [word, text] of list) byWord.set(word, [...(byWord.get(word) || []), text]);
  return make('dl', { class: 'notes' }, [...byWord].map(([word, texts]) =>
    make('div', null, make('dt', null, worded(word)), texts.slice(0, SHOWN).map((text) => make('dd', null, text)),
      texts.length > SHOWN ? make('dd', null, make('details', null, make('summary', null, (texts.length - SHOWN) + ' more'), texts.slice(SHOWN).map((text) => make('p', null, text)))) : null)));
}

// A word and a sign besides the colour.
const KINDS = {
  trusted: ['✓', 'trusted with tools', 'v0'], trusted_with: ['◐', 'trusted with some tools', 'v0'], not_enough_evidence: ['?', 'not enough evidence', 'v3'],
  not_trusted: ['✗', 'not trusted with tools', 'v1'], unsafe: ['!', 'unsafe', 'v4'],
};

function answer({ target, kind, sentence, tier, further }) {
  const [sign, word, look] = KINDS[kind];
  return make('li', { class: look },
    make('p', { class: 'chips' }, make('b', null, target), make('span', { class: 'badge ' + look }, make('span', { 'aria-hidden': 'true' }, sign + ' '), word), tier ? make('span', { class: 'badge' }, tier) : null),
    make('p', null, sentence), further ? make('p', { class: 'further' }, further) : null);
}

function sectionOf(data) {
  const section = make('section', { id: data.id, 'aria-labelledby': data.id + '-title' }, make('h2', { id: data.id + '-title' }, data.title));
  if (data.answers.length) section.append(make('ul', { class: 'answers' }, data.answers.map(answer)));
  if (data.intro) section.append(make('p', { class: 'intro' }, data.intro));
  if (data.charts.length) section.append(make('div', { class: 'charts n' + data.charts.length }, data.charts.map(chart)));
  section.append(...data.tables.flatMap((one) => [data.tables.length > 1 ? make('h3', null, one.caption) : null, table(one)].filter(Boolean)));
  if (data.notes.length) section.append(notes(data.notes));
  for (const one of data.more) section.append(make('details', { class: 'more' }, make('summary', null, one.caption), table(one)));
  return section;
}

function buildHeader() {
  const { run_id, ruling, said, facts, notes } = page.header;
  byId('run-id').append(plain(run_id));
  byId('ruling').className = 'badge ' + { passed: 'v0', failed: 'v1', no_verdict: 'v4' }[ruling];
  if (ruling === 'not_gated') byId('ruling').remove();
  else byId('ruling').append(said);
  byId('facts').append(...facts.map(([name, value]) => make('div', null, make('dt', null, name), make('dd', null, value))));
  byId('run-notes').append(...notes.map((note) => make('p', null, note)));
}

function buildNav(sections) {
  byId('nav').append(...sections.map(([id, title]) => make('a', { href: '#' + id }, title)));
}

buildHeader();
const early = page.sections.filter(({ id }) => id === 'targets' || id === 'findings' || id === 'changes');
const late = page.sections.filter((section) => !early.includes(section));
byId('before').append(...early.map(sectionOf));
byId('after').append(...late.map(sectionOf));
buildNav([...early.map(({ id, title }) => [id, title]), ['cells', 'Cells'], ...late.map(({ id, title }) => [id, title])]);
buildTheme();
buildFilter();
buildMatrix();
buildPanel();
readAddress();
addEventListener('hashchange', readAddress);
document.body.dataset.ready = 'yes';
