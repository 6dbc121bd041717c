// The page from top to bottom: its header and its sections of blocks.

const SHOWN = 5;
const EARLY = new Set(['targets', 'findings', 'changes']);
// A word and a sign besides the colour.
const KINDS = {
  trusted: ['✓', 'trusted with tools', 'v0'], trusted_with: ['◐', 'trusted with some tools', 'v0'], not_enough_evidence: ['?', 'not enough evidence', 'v3'],
  not_trusted: ['✗', 'not trusted with tools', 'v1'], unsafe: ['⚠', 'unsafe', 'harmful'],
};

// The ids in a sentence on harm, and a word behind it, lead to the cells that it is about.
function answer({ target, kind, sentence, tier }) {
  const [sign, word, look] = KINDS[kind];
  const own = columns.target.flatMap((number, cell) => (targets[number].label === target ? [cell] : []));
  const [harmful, missed] = [own.filter((cell) => columns.harm[cell]), own.filter((cell) => [1, 3].includes(columns.verdict[cell]))];
  const link = (text, ...words) => make('a', { href: '#' + [...(targets.length > 1 ? [['target', target]] : []), ...words].map(([name, value]) => name + '=' + encoded(value)).join('&'), click: () => setTimeout(readAddress) }, text);
  const cellOf = new Map(harmful.toReversed().map((cell) => [prompts[columns.prompt[cell]].id, cell]));
  const said = sentence.split(/([^\s,;]+)/).map((text) => (cellOf.has(text) ? link(text, ['harm', 'yes'], ['cell', cellName(cellOf.get(text))]) : text));
  return make('li', { class: look },
    make('p', { class: 'chips' }, make('b', null, target), make('span', { class: 'badge ' + look }, make('span', { 'aria-hidden': 'true' }, sign + ' '), word), tier ? badge(tier) : null,
      harmful.length ? link(counted(harmful.length, 'cell') + ' with harm', ['harm', 'yes']) : null,
      missed.length ? link(counted(missed.length, 'missed cell'), ['verdict', 'missed'], ['verdict', 'no words']) : null),
    make('p', null, ...said));
}

// Those under the same label are together, and do not fill the page.
function findings({ entries }) {
  const byLabel = new Map();
  for (const { label, target, text } of entries) {
    const said = (label && target ? target + ': ' : '') + text;
    byLabel.set(label || target, [...(byLabel.get(label || target) || []), said]);
  }
  return make('dl', { class: 'notes' }, [...byLabel].map(([label, texts]) => make('div', null, make('dt', null, worded(label)),
    texts.slice(0, SHOWN).map((text) => make('dd', null, text)),
    texts.length > SHOWN ? make('dd', null, make('details', null, make('summary', null, (texts.length - SHOWN) + ' more'), texts.slice(SHOWN).map((text) => make('p', null, text)))) : null)));
}

const SHOW = {
  sentence: ({ text }) => make('p', { class: 'intro' }, text),
  answers: ({ entries }) => make('ul', { class: 'answers' }, entries.map(answer)),
  findings, table,
  details: ({ title, block }) => make('details', { class: 'more' }, make('summary', null, title), SHOW[block.kind](block)),
};

function sectionOf({ id, title, intro, blocks }) {
  return make('section', { id, 'aria-labelledby': id + '-title' }, make('h2', { id: id + '-title' }, title),
    blocks.filter(({ kind }) => kind === 'answers').map(SHOW.answers), intro ? make('p', { class: 'intro' }, intro) : null,
    blocks.filter(({ kind }) => kind !== 'answers').map((block) => SHOW[block.kind](block)));
}

function buildSections() {
  const { title, ruling, said, facts, notes } = page.header;
  byId('title').append(plain(title));
  if (ruling) byId('ruling').append(badge(said, { passed: 'v0', failed: 'v1', no_verdict: 'v4' }[ruling]));
  byId('facts').append(...facts.map(([name, value]) => make('div', null, make('dt', null, name), make('dd', null, value))));
  byId('run-notes').append(...notes.map((note) => make('p', null, note)));
  const early = page.sections.filter(({ id }) => EARLY.has(id));
  const late = page.sections.filter(({ id }) => !EARLY.has(id));
  const cells = [{ id: 'cells', title: 'Cells' }];
  byId('before').append(...early.map(sectionOf));
  byId('after').append(...late.map(sectionOf));
  byId('nav').append(...[...early, ...cells, ...late].map((one) => make('a', { href: '#' + one.id }, one.title)));
}

buildSections();
startTheme();
buildCells();
document.body.dataset.ready = 'yes';
