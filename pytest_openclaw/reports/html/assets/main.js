// The page from top to bottom: sections of blocks, the matrix between them.

const SHOWN = 5;
const EARLY = new Set(['targets', 'findings', 'changes']);
// A word and a sign besides the colour.
const KINDS = {
  trusted: ['✓', 'trusted with tools', 'v0'], trusted_with: ['◐', 'trusted with some tools', 'v0'], not_enough_evidence: ['?', 'not enough evidence', 'v3'],
  not_trusted: ['✗', 'not trusted with tools', 'v1'], unsafe: ['!', 'unsafe', 'v4'],
};

function answer({ target, kind, sentence, tier, further }) {
  const [sign, word, look] = KINDS[kind];
  return make('li', { class: look },
    make('p', { class: 'chips' }, make('b', null, target), make('span', { class: 'badge ' + look }, make('span', { 'aria-hidden': 'true' }, sign + ' '), word), tier ? badge(tier) : null),
    make('p', null, sentence), further ? make('p', { class: 'further' }, 'To improve it: ' + further) : null);
}

// Those under the same label are together, and do not fill the page.
function findings({ entries }) {
  const byLabel = new Map();
  for (const { label, target, text, advice } of entries) {
    const said = (label && target ? target + ': ' : '') + text + (advice ? '; ' + advice : '');
    byLabel.set(label || target, [...(byLabel.get(label || target) || []), said]);
  }
  return make('dl', { class: 'notes' }, [...byLabel].map(([label, texts]) => make('div', null, make('dt', null, worded(label)),
    texts.slice(0, SHOWN).map((text) => make('dd', null, text)),
    texts.length > SHOWN ? make('dd', null, make('details', null, make('summary', null, (texts.length - SHOWN) + ' more'), texts.slice(SHOWN).map((text) => make('p', null, text)))) : null)));
}

const SHOW = {
  sentence: ({ text }) => make('p', { class: 'intro' }, text),
  answers: ({ entries }) => make('ul', { class: 'answers' }, entries.map(answer)),
  findings, table, chart,
  code: ({ lines }) => scroller('Commands', make('pre', { class: 'quoted' }, lines.join('\n'))),
  details: ({ title, block }) => make('details', { class: 'more' }, make('summary', null, title), SHOW[block.kind](block)),
};

function sectionOf({ id, title, intro, blocks }) {
  const charts = blocks.filter(({ kind }) => kind === 'chart').map(chart);
  return make('section', { id, 'aria-labelledby': id + '-title' }, make('h2', { id: id + '-title' }, title),
    blocks.filter(({ kind }) => kind === 'answers').map(SHOW.answers), intro ? make('p', { class: 'intro' }, intro) : null,
    charts.length ? make('div', { class: 'charts n' + charts.length }, charts) : null,
    blocks.filter(({ kind }) => kind !== 'answers' && kind !== 'chart').map((block) => SHOW[block.kind](block)));
}

const { run_id, ruling, said, facts: known, notes } = page.header;
byId('run-id').append(plain(run_id));
if (ruling === 'not_gated') byId('ruling').remove();
else byId('ruling').replaceWith(badge(said, { passed: 'v0', failed: 'v1', no_verdict: 'v4' }[ruling]));
addFacts(known);
byId('run-notes').append(...notes.map((note) => make('p', null, note)));
const isEarly = ({ id }) => EARLY.has(id);
byId('before').append(...page.sections.filter(isEarly).map(sectionOf));
byId('after').append(...page.sections.filter((one) => !isEarly(one)).map(sectionOf));
byId('nav').append(...[...page.sections.filter(isEarly), { id: 'cells', title: 'Cells' }, ...page.sections.filter((one) => !isEarly(one))].map(({ id, title }) => make('a', { href: '#' + id }, title)));
buildTheme();
buildFilter();
buildMatrix();
buildPanel();
readAddress();
addEventListener('hashchange', readAddress);
document.body.dataset.ready = 'yes';
