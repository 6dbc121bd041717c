// All runs: each target's rate over time, with its intervals, and where its tier changed.

const HEIGHT = 120;
const [SECOND, FIRST] = page.floors;
const form = byId('filter');
const percent = (rate) => (rate === null ? '–' : Math.floor(100 * rate + 1e-9) + ' %');
const range = ({ n, low, high }) => (n ? percent(low).replace(' %', '-') + percent(high) : '–');
const down = (rate) => 6 + (1 - rate) * (HEIGHT - 12);
const tierOf = ({ tools: { tier, conclusive } }) => (tier ? 'Tier ' + tier + (conclusive ? '' : '?') : '');

function trend(runs, what) {
  const isTools = what === 'tools';
  const measured = runs.filter((run) => run.shown[what].n);
  if (!measured.length) return make('p', { class: 'empty' }, isTools ? 'no tool cell was answered' : 'no cell was judged');
  const place = (n) => at((n + 0.5) / measured.length);
  const shapes = measured.flatMap((run, n) => {
    const { rate, low, high } = run.shown[what];
    const path = n ? [line('path', place(n - 1), down(measured[n - 1].shown[what].rate), place(n), down(rate))] : [];
    return [...path, line('interval', place(n), down(low), place(n), down(high)), drawn('circle', { class: run.note ? 'partial' : 'value', cx: place(n), cy: down(rate), r: 5 },
      drawn('title', {}, run.name + ': ' + percent(rate) + ', 95 % ' + range(run.shown[what])))];
  });
  const limits = isTools ? page.floors.map((floor) => line('mark', 0, down(floor), '100%', down(floor))) : [];
  const side = isTools ? [[(1 + FIRST) / 2, 'Tier 1'], [(FIRST + SECOND) / 2, 'Tier 2'], [SECOND / 2, 'Tier 3']] : [[1, '100 %'], [0.5, '50 %'], [0, '0 %']];
  const list = measured.map((run) => run.name + ' ' + percent(run.shown[what].rate)).join(', ');
  return make('div', { class: 'history', role: 'img', 'aria-label': plain((isTools ? 'Right tool calls' : 'Passed cells') + ', oldest run first: ' + list) },
    strip('side', side.map(([rate, text]) => drawn('text', { x: '100%', y: down(rate) + 4, 'text-anchor': 'end' }, text))), strip('trend', limits, shapes));
}

function changes(runs) {
  const tiers = runs.filter((run) => run.shown.tools.tier);
  const found = tiers.slice(1).flatMap((run, n) => (run.shown.tools.tier === tiers[n].shown.tools.tier ? []
    : [tierOf(tiers[n].shown) + ' → ' + tierOf(run.shown) + ' in ' + run.name + ' (' + run.day.slice(0, 10) + ')']));
  return found.length ? make('p', { class: 'changed' }, 'Tier changes: ' + found.join('; ')) : null;
}

function row({ name, link, day, note, is_other, shown: { passed, tools }, shown }) {
  const count = ({ n, right }) => (n ? right + '/' + n : '–');
  const texts = [make('a', { href: link }, name), day, count(passed) + (passed.n && is_other ? '*' : ''), range(passed), count(tools), range(tools), tierOf(shown) || '–', note];
  return make('tr', null, texts.map((text, n) => make(n ? 'td' : 'th', { scope: n ? null : 'row', class: n > 1 && n < 6 ? 'figure' : null }, text)));
}

function targetBlock(target, number, wanted) {
  const runs = target.runs.map((run) => ({ ...run, shown: run.figures[wanted.suite] })).filter(({ shown }) => shown && shown.n >= Number(wanted.size));
  if ((wanted.surface && target.surface !== wanted.surface) || !runs.length || !target.label.toLowerCase().includes(wanted.target.toLowerCase())) return null;
  const latest = tierOf(runs[runs.length - 1].shown);
  const heads = ['run', 'ended', 'passed', '95 %', 'tools', '95 %', 'tier', 'note'].map((text, n) => make('th', { scope: 'col', class: n > 1 && n < 6 ? 'figure' : null }, text));
  return make('section', { 'aria-labelledby': 'target-' + number },
    make('h2', { id: 'target-' + number }, target.label, ' ', badge('surface ' + target.surface), ' ', latest ? badge(latest) : null),
    trend(runs, wanted.what || 'tools'), changes(runs),
    scroller('Runs of ' + plain(target.label), make('table', null, make('thead', null, make('tr', null, heads)), make('tbody', null, runs.reverse().map(row)))));
}

function refresh() {
  const data = new FormData(form);
  const blocks = page.targets.map((target, number) => targetBlock(target, number, Object.fromEntries(data))).filter(Boolean);
  byId('targets').replaceChildren(...blocks);
  if (blocks.some((block) => block.textContent.includes('*'))) byId('targets').append(make('p', { class: 'intro' }, '* other prompts or validators than in the run before it'));
  byId('found').textContent = counted(blocks.length, 'target') + ', newest run first in the tables';
  const words = [...data].filter(([, value]) => value).map(([name, value]) => name + '=' + encodeURIComponent(value));
  if (words.length || location.hash) history.replaceState(null, '', '#' + words.join('&'));
}

function readAddress() {
  const words = new URLSearchParams(location.hash.slice(1));
  for (const field of form.elements) field.value = words.get(field.name) ?? '';
  refresh();
}

const field = (label, element) => make('label', null, make('span', null, label), element);
const select = (label, name, entries) => field(label, make('select', { name }, options(entries)));
form.append(
  field('Target', make('input', { name: 'target', type: 'search', autocomplete: 'off', spellcheck: 'false' })),
  select('Rate of', 'what', [['', 'right tool calls'], ['passed', 'passed cells']]),
  select('Suite', 'suite', [['', 'All suites'], ...page.suites.map((suite) => [suite, suite])]),
  select('Surface', 'surface', [['', 'All surfaces'], ...page.surfaces.map((surface) => [surface, surface])]),
  select('Size', 'size', [['', 'Any'], ...['10', '30', '100', '300'].map((n) => [n, n + ' cells or more'])]));
form.addEventListener('input', refresh);
form.addEventListener('submit', (event) => event.preventDefault());
addFacts([['runs', String(page.n_runs)], ['targets', String(page.targets.length)]]);
addEventListener('hashchange', readAddress);
buildTheme();
readAddress();
document.body.dataset.ready = 'yes';
