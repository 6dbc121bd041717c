// A chart for each target and suite: the share of passed cells of each run, with its interval.

const [HEIGHT, LEFT, TOP] = [120, 40, 8];
const BOTTOM = TOP + HEIGHT;
const yOf = (share) => BOTTOM - share * HEIGHT;

function draw(tag, attributes, ...children) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children.map((child) => (typeof child === 'string' ? plain(child) : child)));
  return element;
}

// Cut, so that 100 % means all.
const percent = (share) => (share > 0 ? Math.max(1, Math.floor(share * 100 + 1e-9)) : 0) + ' %';
const text = (x, y, anchor, said) => draw('text', { x, y, 'text-anchor': anchor }, said);
const share = (rate) => (rate.n ? `${rate.n_success}/${rate.n}` : '–');

function dayOf({ ended_at_ms: ms }) {
  const date = new Date(ms);
  return Number.isNaN(date.getTime()) ? '–' : date.toISOString().slice(0, 10);
}

function rowOf(run) {
  const { passed, tool_use: use, p50_ms: p50 } = run;
  const interval = passed.interval_95 ? `${percent(passed.interval_95.low)} to ${percent(passed.interval_95.high)}` : '–';
  return [run.run_id, dayOf(run), share(passed), interval, p50 === null ? '–' : Math.round(p50).toLocaleString('en') + ' ms', use.tier ? use.tier + (use.conclusive ? '' : '?') : '–', share(use), run.state];
}

function point(x, run) {
  const { rate, interval_95: { low, high } } = run.passed;
  return draw('g', { class: run.state }, draw('title', {}, rowOf(run).slice(0, 4).join(', ')),
    draw('path', { d: `M${x} ${yOf(low)}V${yOf(high)}` }), draw('circle', { cx: x, cy: yOf(rate), r: 3.5 }));
}

// No line joins runs under different conditions.
function chart(runs, name) {
  const step = Math.min(40, Math.max(8, 290 / runs.length));
  const right = LEFT + Math.max(160, step * runs.length);
  const [breaks, points] = [[], []];
  let [line, pen] = ['', 'M'];
  for (const [n, run] of runs.entries()) {
    const x = LEFT + step * (n + 0.5);
    if (run.changes.length) {
      breaks.push(draw('path', { class: 'change', d: `M${x - step / 2} ${TOP}V${BOTTOM}` }));
      pen = 'M';
    }
    if (!run.passed.interval_95) continue;
    line += pen + x + ' ' + yOf(run.passed.rate);
    pen = 'L';
    points.push(point(x, run));
  }
  return draw('svg', { role: 'img', 'aria-label': name, width: right + 4, height: BOTTOM + 20 },
    ...[0, 0.5, 1].flatMap((level) => [draw('path', { class: 'grid', d: `M${LEFT} ${yOf(level)}H${right}` }), text(LEFT - 6, yOf(level) + 4, 'end', percent(level))]),
    ...breaks, draw('path', { class: 'line', d: line }), ...points,
    text(LEFT, BOTTOM + 16, 'start', dayOf(runs[0])), runs.length > 1 ? text(right, BOTTOM + 16, 'end', dayOf(runs.at(-1))) : '');
}

const HEAD = ['run', 'ended', 'passed', '95% CI', 'p50', 'tier', 'tools', 'state'];
const LEFT_COLUMNS = HEAD.map((name) => ['run', 'ended', 'tier', 'state'].includes(name));

function figure({ target, suite, runs }) {
  const name = `${target}, ${suite}`;
  const changes = runs.filter((run) => run.changes.length).map((run) => make('li', null, `${dayOf(run)}, ${run.run_id}: ${run.changes.join('; ')}`));
  return make('figure', null, make('figcaption', null, make('h2', null, target), make('p', null, suite)), scroller(name, chart(runs, name)),
    make('ul', { class: 'changes' }, changes),
    make('details', null, make('summary', null, counted(runs.length, 'run')), table({ caption: name + ', runs', head: HEAD, left: LEFT_COLUMNS, kept: [...HEAD.keys()], rows: runs.map(rowOf) })));
}

byId('charts').append(...(page.targets.length ? page.targets.map(figure) : [make('p', null, 'No run has such a target.')]));
// The newest runs are seen first.
for (const box of document.querySelectorAll('.scroll')) box.scrollLeft = box.scrollWidth;
byId('run-notes').append(...page.unreadable.map((reason) => make('p', null, 'Left out: ' + reason)));
startTheme();
document.body.dataset.ready = 'yes';
