// Reports in a real browser: opened from disk, used with pointer and keyboard, printed, by day and by night.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { normscope, open, temporaryDirectory } from './harness.mjs';

const quick = {
  heatmap: ['heatmap', '--n', '3:12', '--d', '2:5', '--draws', '5'],
  mask: ['mask', 'causal', 'window:1', '--n', '8'],
  collapse: ['collapse', '--tokens', '8', '--dim', '8', '--layers', '6', '--samples', '3', '--variant', 'san', 'san+norm',
    '--mask', 'full', 'causal'],
  equilibria: ['equilibria', '--starts', '20', '--steps', '50', '--angles', '20', '--w', '2'],
  train: ['train', 'majority', '--steps', '40', '--samples', '500', '--batch', '100', '--evaluate-every', '5', '--norm',
    'layernorm,rmsnorm', '--seeds', '3'],
};
function make(directory, name) {
  const out = path.join(directory, name);
  normscope(...quick[name], '--quiet', '--out', out);
  return path.join(out, 'report.html');
}
const ready = page => page.locator('figure[data-ready]').first().waitFor();
async function download(page, button) {
  const [file] = await Promise.all([page.waitForEvent('download'), button.click()]);
  return { name: file.suggestedFilename(), text: readFileSync(await file.path(), 'utf8') };
}

test('every kind of page opens from disk without errors and without requests', async t => {
  const directory = temporaryDirectory(t);
  for (const name of Object.keys(quick)) {
    const file = make(directory, name);
    for (const colorScheme of ['light', 'dark']) {
      const page = await open(t, file, { colorScheme, width: colorScheme === 'dark' ? 390 : 1280 });
      await ready(page);
      assert.deepEqual(page.problems, [], name);
      assert.deepEqual(page.requests, [], name);
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true, name + ' is too wide');
      for (const figure of await page.locator('figure').all()) {
        assert.match(await figure.locator('.settings').textContent(), /seeds? \d.*normscope \d/);
      }
    }
  }
});

test('legend entries are toggles, for pointer and keyboard', async t => {
  const page = await open(t, make(temporaryDirectory(t), 'train'));
  await ready(page);
  const entry = page.locator('figure').first().getByRole('button', { name: 'layernorm' });
  const lines = page.locator('figure').first().locator('.line[data-name="layernorm"]');
  const hidden = () => lines.evaluateAll(all => all.every(line => line.getAttribute('display') === 'none'));
  assert.equal(await entry.getAttribute('aria-pressed'), 'true');
  await entry.click();
  assert.equal(await entry.getAttribute('aria-pressed'), 'false');
  assert.equal(await hidden(), true);
  await entry.focus();
  await page.keyboard.press('Enter');
  assert.equal(await hidden(), false);
  await page.keyboard.press('Space');
  assert.equal(await hidden(), true);
  await page.keyboard.press('Space');
  await entry.dblclick();
  assert.equal(await hidden(), false);
  assert.equal(await page.locator('.line[data-name="rmsnorm"]').first().getAttribute('display'), 'none');
  await entry.dblclick();
  assert.equal(await page.locator('.line[data-name="rmsnorm"]').first().getAttribute('display'), null);
});

test('curves zoom by a box, by the wheel, by keys and buttons, with ticks of their own, and back', async t => {
  const page = await open(t, make(temporaryDirectory(t), 'train'));
  await ready(page);
  const panel = page.locator('[data-kind="xy"]').nth(1), frame = panel.locator('.frame');
  const state = () => panel.evaluate(g => ({ ticks: g.querySelector('.ticks').textContent, zoomed: g.dataset.zoomed,
    lines: [...g.querySelectorAll('.line, .band')].map(line => line.getAttribute('d')) }));
  const whole = await state(), box = await frame.boundingBox();
  const drag = async () => {
    await page.mouse.move(box.x + 60, box.y + 40);
    await page.mouse.down();
    await page.mouse.move(box.x + 200, box.y + 150, { steps: 4 });
    await page.mouse.up();
  };
  await drag();
  const zoomed = await state();
  assert.equal(zoomed.zoomed, '1');
  assert.notEqual(zoomed.ticks, whole.ticks);
  assert.notDeepEqual(zoomed.lines, whole.lines);
  assert.doesNotMatch(zoomed.lines.join(), /NaN|Infinity/);
  await page.mouse.dblclick(box.x + 30, box.y + 30);
  assert.deepEqual(await state(), whole);
  await page.mouse.move(box.x + 100, box.y + 100);
  await page.keyboard.down('Control');
  await page.mouse.wheel(0, -200);
  await page.keyboard.up('Control');
  assert.equal((await state()).zoomed, '1');
  await page.getByRole('button', { name: 'Reset view' }).first().click();
  assert.deepEqual(await state(), whole);
  await page.getByRole('button', { name: 'Zoom in' }).first().click();
  assert.equal((await state()).zoomed, '1');
  await frame.focus();
  await page.keyboard.press('0');
  assert.deepEqual(await state(), whole);
});

test('the pointer and the arrow keys read the values of all curves', async t => {
  const page = await open(t, make(temporaryDirectory(t), 'train'));
  await ready(page);
  const frame = page.locator('[data-kind="xy"] .frame').nth(1), box = await frame.boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + 20);
  const text = await page.locator('#hint').textContent();
  assert.match(text, /^training step 20\n/);
  assert.match(text, /layernorm: [\d.]+ \[[\d.]+ … [\d.]+\]/);
  assert.match(text, /rmsnorm: /);
  await page.mouse.move(2, 2);
  assert.equal(await page.locator('#hint').isHidden(), true);
  await frame.focus();
  await page.keyboard.press('Home');
  await page.keyboard.press('ArrowRight');
  assert.match(await page.locator('#live').textContent(), /^training step 5\n.*layernorm/s);
});

test('axes of layers and of counts have whole ticks, also when zoomed', async t => {
  const directory = temporaryDirectory(t);
  const page = await open(t, make(directory, 'collapse'));
  await ready(page);
  const panel = page.locator('g.panel[data-whole="x"]').first();
  const along = () => panel.evaluate(g => [...g.querySelectorAll('.ticks text')]
    .filter(text => text.getAttribute('text-anchor') === 'middle').map(text => text.textContent));
  await panel.locator('.frame').focus();
  for (let presses = 0; presses < 5; ++presses) {
    await page.keyboard.press('+');
    for (const label of await along()) assert.match(label, /^\d+$/, `after ${presses + 1}`);
  }
  assert.deepEqual(page.problems, []);
  // Few keys: their number is counted in ones.
  const array = path.join(directory, 'keys.npy');
  execFileSync('/usr/bin/python3', ['-c', 'import sys, numpy; numpy.save(sys.argv[1], numpy.random.RandomState(0).randn(5, 3))', array]);
  normscope('keys', array, '--advice', '--quiet', '--out', path.join(directory, 'keys'));
  const keys = await open(t, path.join(directory, 'keys/report.html'));
  await ready(keys);
  const counts = await keys.locator('g.panel[data-whole="y"]').first().evaluate(g =>
    [...g.querySelectorAll('.ticks text')].filter(text => text.getAttribute('text-anchor') === 'end').map(text => text.textContent));
  assert.ok(counts.length > 1);
  for (const label of counts) assert.match(label, /^\d+$/);
  // Numbers stay on one line, however narrow.
  await keys.setViewportSize({ width: 400, height: 800 });
  const heights = await keys.locator('td.number').evaluateAll(cells => cells.map(cell => {
    const range = document.createRange();
    range.selectNodeContents(cell);
    return range.getClientRects().length;
  }));
  assert.ok(heights.length > 5);
  assert.ok(heights.every(lines => lines === 1));
});

test('of two seeds both curves are read, zoomed by themselves, and hidden together', async t => {
  const out = path.join(temporaryDirectory(t), 'two');
  normscope(...quick.train.slice(0, -1), '2', '--quiet', '--out', out);
  const page = await open(t, path.join(out, 'report.html'));
  await ready(page);
  const panel = page.locator('[data-kind="xy"]').nth(1), frame = panel.locator('.frame'), box = await frame.boundingBox();
  assert.equal(await panel.locator('.band').count(), 0);
  const lines = () => panel.locator('.line[data-name="layernorm"]').evaluateAll(all => all.map(line => line.getAttribute('d')));
  await page.mouse.move(box.x + box.width / 2, box.y + 20);
  assert.match(await page.locator('#hint').textContent(), /layernorm, seed \d+: [\d.]+\n(.*\n)*.*layernorm, seed \d+: /);
  const before = await lines();
  await frame.focus();
  await page.keyboard.press('+');
  const zoomed = await lines();
  assert.equal(zoomed.length, 2);
  assert.notEqual(zoomed[0], zoomed[1]);
  assert.notDeepEqual(zoomed, before);
  const entry = page.locator('figure').first().getByRole('button', { name: 'layernorm' });
  assert.equal(await entry.count(), 1);
  await entry.click();
  assert.equal(await panel.locator('.line[data-name="layernorm"][display="none"]').count(), 2);
  await page.keyboard.press('0');
  await page.mouse.move(box.x + box.width / 2, box.y + 20);
  assert.doesNotMatch(await page.locator('#hint').textContent(), /layernorm/);
  assert.deepEqual(page.problems, []);
});

test('cells of heat maps and masks are reached by arrow keys', async t => {
  const directory = temporaryDirectory(t);
  const heat = await open(t, make(directory, 'heatmap'));
  await ready(heat);
  const cells = heat.locator('.cells').first();
  await cells.locator('[tabindex="0"]').focus();
  await heat.keyboard.press('ArrowRight');
  await heat.keyboard.press('ArrowDown');
  assert.match(await heat.evaluate(() => document.activeElement.getAttribute('aria-label')), /n = 4, d = 3/);
  assert.match(await heat.locator('#hint').textContent(), /n = 4, d = 3/);
  assert.equal(await cells.locator('[tabindex="0"]').count(), 1);

  const mask = await open(t, make(directory, 'mask'));
  await ready(mask);
  await mask.locator('.matrix').first().locator('[tabindex="0"]').focus();
  await mask.keyboard.press('ArrowRight');
  assert.equal(await mask.locator('#live').textContent(), 'token 0 does not attend to token 1');
  await mask.keyboard.press('ArrowDown');
  assert.equal(await mask.locator('#live').textContent(), 'token 1 attends to token 1');
});

test('data are shown as a table and downloaded as they are; pictures as they are seen', async t => {
  const page = await open(t, make(temporaryDirectory(t), 'train'), { acceptDownloads: true });
  await ready(page);
  const figure = page.locator('figure').first(), toggle = figure.getByRole('button', { name: 'Data as table' });
  await toggle.click();
  assert.equal(await toggle.getAttribute('aria-expanded'), 'true');
  assert.deepEqual(await figure.locator('.data-table th').allTextContents(), ['panel', 'curve', 'x', 'y', 'low', 'high']);
  const csv = await download(page, figure.getByRole('button', { name: 'Download CSV' }));
  assert.equal(csv.name, 'training.csv');
  assert.match(csv.text, /^panel,curve,x,y,low,high\nTraining loss,layernorm,5,/);
  assert.equal(await figure.locator('.data-table tr').count(), Math.min(501, csv.text.trim().split('\n').length));
  await toggle.click();
  assert.equal(await figure.locator('.data-table').count(), 0);
  await figure.getByRole('button', { name: 'rmsnorm' }).click();
  const svg = await download(page, figure.getByRole('button', { name: 'Download SVG' }));
  assert.equal(svg.name, 'training.svg');
  const sound = await page.evaluate(text => {
    const document = new DOMParser().parseFromString(text, 'image/svg+xml');
    return { error: document.querySelector('parsererror')?.textContent ?? '', frames: document.querySelectorAll('.frame, .cross').length,
      hidden: document.querySelectorAll('.line[data-name="rmsnorm"][display="none"]').length };
  }, svg.text);
  assert.deepEqual(sound, { error: '', frames: 0, hidden: 4 });
  assert.deepEqual(page.problems, []);
});

test('light, dark and as the system has it', async t => {
  const page = await open(t, make(temporaryDirectory(t), 'mask'), { colorScheme: 'dark' });
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const dark = 'rgb(21, 23, 26)', light = 'rgb(255, 255, 255)', theme = page.locator('#theme');
  assert.equal(await ground(), dark);
  await theme.click();
  assert.match(await theme.textContent(), /light/);
  assert.equal(await ground(), light);
  await theme.click();
  assert.equal(await ground(), dark);
  await page.emulateMedia({ colorScheme: 'light' });
  assert.equal(await ground(), dark);
  await theme.click();
  assert.equal(await ground(), light);
});

test('on paper there is ink on white and nothing to press', async t => {
  const page = await open(t, make(temporaryDirectory(t), 'train'), { colorScheme: 'dark' });
  await ready(page);
  await page.locator('#theme').click();
  await page.locator('#theme').click();
  await page.emulateMedia({ media: 'print' });
  assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), 'rgb(255, 255, 255)');
  assert.equal(await page.locator('button:visible').count(), 0);
  assert.equal(await page.evaluate(() => getComputedStyle(document.querySelector('figure svg')).color), 'rgb(0, 0, 0)');
  assert.ok((await page.pdf()).length > 10_000);
});

test('scenes in three dimensions turn under the keys and the pointer, and back', async t => {
  const directory = temporaryDirectory(t);
  // The audit's scatter needs a training in 3-D; a few steps are enough to draw it.
  normscope('paper', '--only', 'fig1ab', '--seeds', '1', '--steps', '20', '--quiet', '--out', path.join(directory, 'paper'));
  const page = await open(t, path.join(directory, 'paper/report.html'));
  await ready(page);
  const scene = page.locator('[data-kind="3d"]').first(), frame = scene.locator('.frame');
  const shapes = () => scene.evaluate(g => [...g.querySelectorAll('.items .point')].map(p => p.getAttribute('d')).sort());
  const before = await shapes();
  await frame.focus();
  await page.keyboard.press('ArrowRight');
  await page.waitForFunction(() => document.getElementById('live').textContent.includes('azimuth 25'));
  await page.waitForTimeout(50);
  const after = await shapes();
  assert.equal(after.length, before.length);
  assert.notDeepEqual(after, before);
  assert.doesNotMatch(after.join(), /NaN/);
  await page.keyboard.press('0');
  await page.waitForTimeout(50);
  assert.equal((await shapes()).length, before.length);
  const box = await frame.boundingBox();
  await page.mouse.move(box.x + 100, box.y + 100);
  await page.mouse.down();
  await page.mouse.move(box.x + 200, box.y + 130, { steps: 3 });
  await page.mouse.up();
  await page.waitForTimeout(50);
  assert.notDeepEqual(await shapes(), before);
  assert.deepEqual(page.problems, []);
});

test('what runs say stays text', async t => {
  const directory = temporaryDirectory(t), attack = '</script><script>document.title="taken"</script><img src=x onerror=document.title="taken">\u202e';
  make(directory, 'mask');
  make(directory, 'train');
  for (const [name, change] of [['mask', json => { json.masks[0].mask = attack; }]]) {
    const file = path.join(directory, name, 'results.json'), json = JSON.parse(readFileSync(file));
    change(json);
    writeFileSync(file, JSON.stringify(json));
  }
  const log = path.join(directory, 'train/metrics.jsonl');
  writeFileSync(log, readFileSync(log, 'utf8').replaceAll('"rmsnorm"', JSON.stringify(attack)));
  const out = path.join(directory, 'page.html');
  normscope('report', path.join(directory, 'mask'), path.join(directory, 'train'), '--quiet', '--out', out);
  const page = await open(t, out);
  await ready(page);
  await page.mouse.wheel(0, 5000);
  await page.waitForTimeout(200);
  await page.getByRole('button', { name: 'Data as table' }).last().click();
  assert.notEqual(await page.title(), 'taken');
  assert.deepEqual(page.problems, []);
  assert.deepEqual(page.requests, []);
});

test('a report over fifty runs is small, complete and drawn as it comes into sight', async t => {
  const directory = temporaryDirectory(t), runs = [];
  make(directory, 'heatmap');
  make(directory, 'train');
  make(directory, 'collapse');
  for (let i = 0; i < 50; ++i) {
    const run = path.join(directory, `run${i}`);
    cpSync(path.join(directory, ['heatmap', 'train', 'collapse'][i % 3]), run, { recursive: true });
    runs.push(run);
  }
  const out = path.join(directory, 'page.html');
  normscope('report', ...runs, '--quiet', '--out', out);
  assert.ok(statSync(out).size < 20e6);
  const page = await open(t, out);
  await page.locator('figure').first().scrollIntoViewIfNeeded();
  await ready(page);
  assert.equal(await page.locator('section.run').count(), 50);
  assert.ok(await page.locator('figure').count() > 50);
  assert.ok(await page.locator('figure[data-ready]').count() < 20);
  assert.equal(await page.evaluate(() => getComputedStyle(document.querySelector('figure')).contentVisibility), 'auto');
  // How long frames are while scrolling through: told, not judged, since machines differ.
  const frames = await page.evaluate(async () => {
    const times = [];
    let last = performance.now();
    for (let y = 0; y < Math.min(60_000, document.documentElement.scrollHeight); y += 600) {
      scrollTo({ top: y, behavior: 'instant' });
      await new Promise(requestAnimationFrame);
      times.push(performance.now() - last);
      last = performance.now();
    }
    return { count: times.length, median: times.sort((a, b) => a - b)[times.length >> 1], longest: times.at(-1) };
  });
  t.diagnostic(`${(statSync(out).size / 1e6).toFixed(1)} MB; ${frames.count} frames of scrolling: median ${frames.median.toFixed(0)} ms, longest ${frames.longest.toFixed(0)} ms`);
  const link = page.locator('nav a').last();
  await link.click();
  assert.deepEqual(page.problems, []);
});
