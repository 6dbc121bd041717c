// All runs: each target's rate over time, with its intervals, and where its tier changed.

const page = JSON.parse(document.querySelector('script.page').textContent);
const DEFAULTS = { what: 'tools', suite: '', surface: '', size: '0', target: '' };
const choice = { ...DEFAULTS };
const HEIGHT = 120;
const percent = (rate) => (rate === null ? '–' : Math.floor(100 * rate + 1e-9) + ' %');
const range = ({ n, low, high }) => (n ? Math.floor(100 * low + 1e-9) + '-' + percent(high) : '–');
const down = (rate) => 6 + (1 - rate) * (HEIGHT - 12);
const figuresOf = (run) => run.figures[choice.suite];
const tierOf = (run) => { const { tier, conclusive } = figuresOf(run).tools; return tier ? 'Tier ' + tier + (conclusive ? '' : '?') : ''; };

function fitting(target) {
  return target.runs.filter((run) => figuresOf(run) && figuresOf(run).n >= Number(choice.size));
}

function sideLabels() {
  const [second, first] = page.floors;
  return choice.what === 'tools' ? [[(1 + first) / 2, 'Tier 1'], [(first + second) / 2, 'Tier 2'], [second / 2, 'Tier 3']] : [[1, '100 %'], [0.5, '50 %'], [0, '0 %']];
}

function trend(runs) {
  const measured = runs.filter((run) => figuresOf(run)[choice.what].n);
  if (!measured.length) return make('p', { class: 'empty' }, choice.what === 'tools' ? 'no tool cell was answered' : 'no cell was judged');
  const place = (n) => at((n + 0.5) / measured.length);
  const line = (cls, x1, y1, x2, y2) => drawn('line', { class: cls, x1, x2, y1, y2 });
  const svg = drawn('svg', { class: 'trend', 'aria-hidden': 'true' });
  if (choice.what === 'tools') svg.append(...page.floors.map((floor) => line('mark', 0, down(floor), '100%', down(floor))));
  measured.forEach((run, n) => {
    const { rate, low, high } = figuresOf(run)[choice.what];
    if (n) svg.append(line('path', place(n - 1), down(figuresOf(measured[n - 1])[choice.what].rate), place(n), down(rate)));
    const point = drawn('circle', { class: run.note ? 'partial' : 'value', cx: place(n), cy: down(rate), r: 5 });
    point.append(drawn('title', {}, run.name + ': ' + percent(rate) + ', 95 % ' + range(figuresOf(run)[choice.what])));
    svg.append(line('interval', place(n), down(low), place(n), down(high)), point);
  });
  const title = choice.what === 'tools' ? 'Right tool calls' : 'Passed cells';
  const list = measured.map((run) => run.name + ' ' + percent(figuresOf(run)[choice.what].rate)).join(', ');
  const side = drawn('svg', { class: 'side', 'aria-hidden': 'true' });
  side.append(...sideLabels().map(([rate, text]) => drawn('text', { x: '100%', y: down(rate) + 4, 'text-anchor': 'end' }, text)));
  return make('div', { class: 'history', role: 'img', 'aria-label': plain(title + ', oldest run first: ' + list) }, side, svg);
}

function changes(runs) {
  const tiers = runs.filter((run) => tierOf(run));
  const found = tiers.flatMap((run, n) => (n && figuresOf(run).tools.tier !== figuresOf(tiers[n - 1]).tools.tier
    ? [tierOf(tiers[n - 1]) + ' → ' + tierOf(run) + ' in ' + run.name + ' (' + run.day.slice(0, 10) + ')'] : []));
  return found.length ? make('p', { class: 'changed' }, 'Tier changes: ' + found.join('; ')) : null;
}

function row(run) {
  const { passed, tools } = figuresOf(run);
  const cells = [run.day, passed.n ? passed.right + '/' + passed.n + (run.is_other ? '*' : '') : '–', range(passed), tools.n ? tools.right + '/' + tools.n : '–', range(tools), tierOf(run) || '–', run.note];
  return make('tr', null, make('th', { scope: 'row' }, make('a', { href: run.link }, run.name)),
    cells.map((text, n) => make('td', { class: n > 0 && n < 5 ? 'figure' : null }, text)));
}

function targetBlock(target, number) {
  const runs = fitting(target);
  if (choice.surface && target.surface !== choice.surface) return null;
  if (!runs.length || !target.label.toLowerCase().includes(choice.target.toLowerCase())) return null;
  const latest = tierOf(runs[runs.length - 1]);
  const heads = ['run', 'ended', 'passed', '95 %', 'tools', '95 %', 'tier', 'note'].map((text, n) => make('th', { scope: 'col', class: n > 1 && n < 6 ? 'figure' : null }, text));
  return make('section', { 'aria-labelledby': 'target-' + number },
    make('h2', { id: 'target-' + number }, target.label, ' ', make('span', { class: 'badge' }, 'surface ' + target.surface), ' ', latest ? make('span', { class: 'badge' }, latest) : null),
    trend(runs), changes(runs),
    scroller('Runs of ' + plain(target.label), make('table', null, make('thead', null, make('tr', null, heads)), make('tbody', null, runs.slice().reverse().map(row)))));
}

function refresh() {
  const blocks = page.targets.map(targetBlock).filter(Boolean);
  byId('targets').textContent = '';
  byId('targets').append(...blocks);
  if (blocks.some((block) => block.textContent.includes('*'))) byId('targets').append(make('p', { class: 'intro' }, '* other prompts or validators than in the run before it'));
  byId('found').textContent = blocks.length + (blocks.length === 1 ? ' target' : ' targets') + ', newest run first in the tables';
  const words = Object.keys(DEFAULTS).filter((name) => choice[name] !== DEFAULTS[name]).map((name) => name + '=' + encodeURIComponent(choice[name]));
  if (words.length || location.hash) history.replaceState(null, '', '#' + words.join('&'));
}

function field(label, name, entries) {
  const options = entries.map(([value, text]) => { const option = make('option', null, text); option.value = value; return option; });
  const element = entries.length ? make('select', { name }, options) : make('input', { name, type: 'search', autocomplete: 'off', spellcheck: 'false' });
  element.addEventListener(entries.length ? 'change' : 'input', () => { choice[name] = element.value; refresh(); });
  return make('label', null, make('span', null, label), element);
}

function readAddress() {
  const words = new URLSearchParams(location.hash.slice(1));
  for (const name of Object.keys(DEFAULTS)) {
    const element = byId('filter').elements[name];
    element.value = words.get(name) ?? DEFAULTS[name];
    choice[name] = element.value;
  }
  refresh();
}

byId('facts').append(...[['runs', page.n_runs], ['targets', page.targets.length]].map(([name, n]) => make('div', null, make('dt', null, name), make('dd', null, String(n)))));
byId('filter').append(
  field('Target', 'target', []),
  field('Rate of', 'what', [['tools', 'right tool calls'], ['passed', 'passed cells']]),
  field('Suite', 'suite', [['', 'All suites'], ...page.suites.map((suite) => [suite, plain(suite)])]),
  field('Surface', 'surface', [['', 'All surfaces'], ...page.surfaces.map((surface) => [surface, surface])]),
  field('Size', 'size', [['0', 'Any'], ...['10', '30', '100', '300'].map((n) => [n, n + ' cells or more'])]));
byId('filter').addEventListener('submit', (event) => event.preventDefault());
addEventListener('hashchange', readAddress);
buildTheme();
readAddress();
document.body.dataset.ready = 'yes';
