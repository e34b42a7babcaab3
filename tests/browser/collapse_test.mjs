// The collapse view against the program, and what every view owes its reader.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { normscope, open, webFolder } from './harness.mjs';

const page = query => 'file://' + path.join(webFolder, 'index.html') + '#collapse' + (query ? '?' + query : '');
const view = async (t, query, options) => {
  const opened = await open(t, page(query), options);
  await opened.getByTestId('collapse-mu').waitFor();
  return opened;
};
const value = (opened, id) => opened.getByTestId(id).getAttribute('data-value').then(Number);
const saved = async (opened, id) => {
  const [download] = await Promise.all([opened.waitForEvent('download'), opened.getByTestId(id).click()]);
  return (await readFile(await download.path(), 'utf8')).replaceAll('\r', '');
};
const near = (actual, expected, tolerance, what) =>
  assert.ok(Math.abs(actual - expected) <= tolerance * Math.max(1e-3, Math.abs(expected)), `${what}: ${actual} on the page, ${expected} by the program`);

// The page's settings and the options that mean the same.
const runs = [
  { n: 16, d: 3, layers: 20, layer: 12, mask: 'causal', variant: 'san+norm', norm: 'unit', value: 'orthogonal', qk: 'gaussian', start: 'sphere', seed: 1 },
  { n: 24, d: 8, layers: 10, layer: 10, mask: 'window:1', variant: 'san', norm: 'unit', value: 'identity', qk: 'zero', start: 'gaussian', seed: 7 },
  { n: 9, d: 2, layers: 8, layer: 5, mask: 'random:0.3', variant: 'san+skip+norm', norm: 'rmsnorm', value: 'jordan:2', qk: 'identity', start: 'sphere', seed: 3, temp: 64 },
  { n: 12, d: 6, layers: 6, layer: 6, mask: 'global+window', variant: 'full', norm: 'layernorm', value: 'gaussian', qk: 'gaussian', start: 'gaussian', seed: 11 },
];
for (const run of runs) {
  test(`Collapse: ${run.variant} under ${run.mask} measures as the program does`, async t => {
    const opened = await view(t, new URLSearchParams(run));
    const { curves: [curve] } = JSON.parse(normscope('collapse', '--json', '--precision', 'float64', '--tokens', run.n, '--dim', run.d, '--layers', run.layers,
      '--mask', run.mask, '--variant', run.variant, '--norm', run.norm, '--value', run.value, '--query-key', run.qk, '--start', run.start, '--seed', run.seed,
      ...(run.temp ? ['--temperature', run.temp] : [])));
    const measures = { mu: 'mu', relative: 'relative', phi: 'min_cosine', 'effective-rank': 'effective_rank', 'stable-rank': 'stable_rank', clusters: 'clusters', rank: 'rank' };
    for (const [id, name] of Object.entries(measures)) near(await value(opened, `collapse-${id}`), curve.measures[name].mean[run.layer], 1e-9, `${name} at layer ${run.layer}`);
    near(await value(opened, 'collapse-rate'), curve.rate.factor, 1e-6, 'rate');
    assert.deepEqual(opened.problems, []);
    assert.deepEqual(opened.requests.filter(address => !address.startsWith('file:')), []);
  });
}

test('Collapse: the bound of Theorem 1 is that of the program and is drawn', async t => {
  const opened = await view(t, 'variant=san&qk=zero&mask=window:1&n=8&layers=5&layer=2&start=gaussian');
  await opened.getByText('bound of Theorem 1 on μ').waitFor();
  assert.match(await opened.getByTestId('collapse-theory').textContent(), /Theorem 1 \(no norm\) speaks of this run: none of \d+ layers above its bound/);
  const { curves: [{ theory }] } = JSON.parse(normscope('collapse', '--json', '--precision', 'float64', '--variant', 'san', '--query-key', 'zero', '--mask', 'window:1', '--tokens', 8,
    '--dim', 3, '--value', 'identity', '--layers', 5, '--seed', 1));
  const rows = (await saved(opened, 'collapse-curves-csv')).trim().split('\n').map(row => row.split(','));
  const column = rows[0].indexOf('bound_theorem1');
  theory.theorem1.bound.forEach((bound, layer) => near(Number(rows[1 + layer][column]), bound, 1e-9, `bound at layer ${layer}`));
});

test('Collapse: layers play, step and slide; the numbers follow', async t => {
  const opened = await view(t, 'layers=40&layer=0');
  const start = await value(opened, 'collapse-mu');
  await opened.getByTestId('collapse-layer-forth').click();
  assert.equal(await opened.getByTestId('collapse-layer-value').textContent(), '1 of 40');
  assert.notEqual(await value(opened, 'collapse-mu'), start);
  await opened.getByTestId('collapse-layer-back').click();
  assert.equal(await value(opened, 'collapse-mu'), start);
  await opened.getByTestId('collapse-layer').focus();
  await opened.keyboard.press('End');
  assert.equal(await opened.getByTestId('collapse-layer-value').textContent(), '40 of 40');
  await opened.getByTestId('collapse-layer-play').click(); // from the start again
  await opened.waitForFunction(() => /^[3-9] of 40$|^[12]\d of 40$/.test(document.querySelector('[data-testid=collapse-layer-value]').textContent));
  await opened.getByTestId('collapse-layer-play').click();
  assert.equal(await opened.getByTestId('collapse-layer-play').textContent(), 'Play');
  assert.match(await opened.getByTestId('collapse-summary').textContent(), /Mask causal, attention \+ norm: at layer \d+ of 40, μ\/‖X‖ is/);
  assert.deepEqual(opened.problems, []);
});

test('Collapse: settings stand in the address and come back', async t => {
  const opened = await view(t, '');
  await opened.getByTestId('collapse-mask').fill('window:2');
  await opened.getByTestId('collapse-variant').selectOption('san');
  await opened.getByTestId('collapse-n-number').fill('10');
  await opened.getByTestId('collapse-layer').focus();
  await opened.keyboard.press('End');
  await opened.waitForFunction(() => /n=10/.test(location.hash) && /mask=window:2/.test(location.hash) && /layer=40/.test(location.hash));
  const [mu, summary] = [await value(opened, 'collapse-mu'), await opened.getByTestId('collapse-summary').textContent()];
  await opened.reload();
  await opened.getByTestId('collapse-mu').waitFor();
  assert.equal(await opened.getByTestId('collapse-mask').inputValue(), 'window:2');
  assert.equal(await opened.getByTestId('collapse-variant').inputValue(), 'san');
  assert.equal(await opened.getByTestId('collapse-n-number').inputValue(), '10');
  assert.equal(await value(opened, 'collapse-mu'), mu);
  assert.equal(await opened.getByTestId('collapse-summary').textContent(), summary);
});

test('Collapse: a wrong mask gets the sentence of the core, beside the mask, until it is right', async t => {
  const opened = await view(t, '');
  await opened.getByTestId('collapse-mask').fill('windw:2');
  const problem = opened.getByTestId('collapse-mask-error');
  await problem.waitFor({ state: 'visible' });
  assert.match(await problem.textContent(), /^Mask 'windw:2' is not known \(did you mean 'window'\?\)/);
  assert.equal(await opened.getByTestId('collapse-mask').getAttribute('aria-invalid'), 'true');
  await opened.getByTestId('collapse-mask-examples').selectOption('star');
  await problem.waitFor({ state: 'hidden' });
  await opened.getByTestId('collapse-n-number').fill('1000');
  await opened.getByTestId('collapse-n-error').waitFor({ state: 'visible' });
  assert.match(await opened.getByTestId('collapse-n-error').textContent(), /from 2 to 64/);
  await opened.getByTestId('collapse-n-number').fill('20');
  await opened.getByTestId('collapse-value').selectOption('jordan');
  await opened.getByTestId('collapse-w-number').fill('3');
  await opened.waitForFunction(() => /value=jordan:3/.test(location.hash));
  assert.deepEqual(opened.problems, []);
});

test('Collapse: an address from anyone shows a sentence, not a broken page', async t => {
  for (const query of ['n=abc', 'mask=%3Cimg%20src=x%3E', 'norm=x', 'variant=y', 'value=jordan:z', 'seed=-1', 'temp=-3', 'place=up', 'start=nowhere', 'd=1e9', 'layers=0']) {
    const opened = await open(t, page(query));
    await opened.locator('.control-error:not([hidden])').first().waitFor();
    assert.equal(await opened.locator('.control-error:not([hidden])').count(), 1, query);
    assert.deepEqual(opened.problems, [], query);
    await opened.context().close();
  }
});

test('Collapse: every figure is saved as SVG and CSV', async t => {
  const opened = await view(t, 'n=5&layers=3&layer=2');
  for (const figure of ['scene', 'curves', 'attention']) {
    const svg = await saved(opened, `collapse-${figure}-svg`);
    assert.match(svg, /^<svg /);
    assert.doesNotMatch(svg, /var\(/);
  }
  const rows = (await saved(opened, 'collapse-curves-csv')).trim().split('\n');
  assert.match(rows[0], /^layer,mu,norm,relative,/);
  assert.equal(rows.length, 5);
  assert.equal(Number(rows[3].split(',')[1]), await value(opened, 'collapse-mu'));
  assert.equal((await saved(opened, 'collapse-scene-csv')).trim().split('\n').length, 1 + 4 * 5);
  assert.equal((await saved(opened, 'collapse-attention-csv')).trim().split('\n').length, 1 + 15);
});

test('Collapse: the sphere turns by keys and by drag, and beyond 3 dimensions the page says what it shows', async t => {
  const opened = await view(t, 'd=8');
  assert.match(await opened.getByTestId('collapse-scene').textContent(), /3 principal directions of 8: \d+\.\d % of squared length/);
  const drawn = () => opened.getByTestId('collapse-scene').innerHTML();
  const before = await drawn();
  await opened.getByTestId('collapse-scene').locator('svg').focus();
  await opened.keyboard.press('ArrowLeft');
  const turned = await drawn();
  assert.notEqual(turned, before);
  const box = await opened.getByTestId('collapse-scene').boundingBox();
  await opened.mouse.move(box.x + 100, box.y + 100);
  await opened.mouse.down();
  await opened.mouse.move(box.x + 160, box.y + 120);
  await opened.mouse.up();
  assert.notEqual(await drawn(), turned);
});

test('Collapse: dark and narrow screens need no scrolling sideways', async t => {
  for (const options of [{ width: 390, height: 800 }, { width: 390, height: 800, colorScheme: 'dark' }, { colorScheme: 'dark' }]) {
    const opened = await view(t, 'n=64&layers=20&layer=5', options);
    assert.ok(await opened.evaluate(() => document.documentElement.scrollWidth <= innerWidth), JSON.stringify(options));
    assert.deepEqual(opened.problems, []);
    await opened.context().close();
  }
});
