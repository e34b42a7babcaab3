// The majority view: training in the page, against the program's.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { normscope, open, webFolder } from './harness.mjs';

const page = query => 'file://' + path.join(webFolder, 'index.html') + '#majority' + (query ? '?' + query : '');
const view = async (t, query, options) => {
  const opened = await open(t, page(query), options);
  await opened.getByTestId('majority-angle-0').waitFor();
  return opened;
};
const value = (opened, id) => opened.getByTestId(id).getAttribute('data-value').then(Number);
const trained = opened => opened.waitForFunction(() => document.querySelector('[data-testid=majority-toggle]').textContent === 'Train again');

test('Majority: the loss falls and the queries turn to 1 with LayerNorm, while the page stays awake', async t => {
  const opened = await view(t, 'norm=layernorm&other=rmsnorm&seed=1');
  const angle = await value(opened, 'majority-angle-0'), loss = await value(opened, 'majority-test-loss-0');
  await opened.evaluate(() => {
    window.frames = 0;
    const turn = () => {
      ++window.frames;
      requestAnimationFrame(turn);
    };
    requestAnimationFrame(turn);
  });
  await opened.getByTestId('majority-toggle').click();
  const begun = await opened.evaluate(() => window.frames);
  await trained(opened);
  assert.ok(await opened.evaluate(() => window.frames) > begun + 5, 'no frame was drawn while it trained');
  assert.ok(await value(opened, 'majority-loss-0') < loss / 3);
  assert.ok(angle > 70 && await value(opened, 'majority-angle-0') < 30);
  assert.ok(await value(opened, 'majority-angle-0') < await value(opened, 'majority-angle-1'));
  assert.ok(await value(opened, 'majority-plane-0') < 1e-9 && await value(opened, 'majority-plane-1') > 1e-3);
  assert.match(await opened.getByTestId('majority-summary').textContent(), /^Step 1500 of 1500, done\. layernorm: loss .*rmsnorm: loss/);
  assert.deepEqual(opened.problems, []);
  assert.deepEqual(opened.requests.filter(address => !address.startsWith('file:')), []);
});

test('Majority: who ends ahead is what the losses shown say, whichever norms are chosen', async t => {
  for (const pair of [['layernorm', 'rmsnorm'], ['layernorm', 'published'], ['none', 'unit']]) {
    const opened = await view(t, `norm=${pair[0]}&other=${pair[1]}&steps=300`);
    assert.doesNotMatch(await opened.locator('.depth-words').first().textContent(), /rmsnorm/);
    assert.doesNotMatch(await opened.getByTestId('majority-summary').textContent(), /ahead/);
    await opened.getByTestId('majority-toggle').click();
    await trained(opened);
    const losses = [await value(opened, 'majority-loss-0'), await value(opened, 'majority-loss-1')];
    const said = losses[0].toFixed(3) === losses[1].toFixed(3) ? 'They end level.' : `${pair[losses[0] < losses[1] ? 0 : 1]} ends ahead, with the lower training loss.`;
    assert.ok((await opened.getByTestId('majority-summary').textContent()).endsWith(said), said);
  }
});

test('Majority: while it trains, the sentence above the figures is of the step shown, and is read aloud seldom', async t => {
  const opened = await view(t, 'steps=5000');
  await opened.evaluate(() => {
    window.announced = [];
    new MutationObserver(() => window.announced.push(performance.now())).observe(document.querySelector('[data-testid=majority-spoken]'), { childList: true });
  });
  await opened.getByTestId('majority-toggle').click();
  for (let i = 0; i < 3; ++i) {
    await opened.waitForTimeout(400);
    const [summary, progress] = await opened.evaluate(() => ['summary', 'progress'].map(id => document.querySelector(`[data-testid=majority-${id}]`).textContent));
    assert.ok(!progress.startsWith('Step 0 ') && summary.startsWith(`${progress}`), `${summary} at ${progress}`);
  }
  await opened.waitForTimeout(2500);
  const announced = await opened.evaluate(() => window.announced);
  for (let i = 1; i < announced.length - 1; ++i) assert.ok(announced[i] - announced[i - 1] > 1900, announced.join(' '));
  await opened.getByTestId('majority-toggle').click();
  assert.equal(await opened.getByTestId('majority-spoken').textContent(), await opened.getByTestId('majority-summary').textContent());
});

test('Majority: the first steps are those of the program', async t => {
  const opened = await view(t, 'norm=published&other=-&seed=4&classes=4&length=10&samples=200&steps=500');
  const { runs: [run] } = JSON.parse(normscope('train', 'majority', '--json', '--quiet', '--norm', 'published', '--seed', '4', '--classes', '4', '--length', '10', '--samples', '200',
    '--margin', '2', '--dim', '3', '--lr', '0.01', '--decay-steps', '100000', '--steps', '5', '--evaluate-every', '5', '--threads', '1'));
  await opened.getByTestId('majority-step').click();
  await opened.waitForFunction(() => /^Step 5 /.test(document.querySelector('[data-testid=majority-progress]').textContent));
  // Parameters are float32; the page's vectors add in another order.
  for (const [id, name] of [['loss', 'train_loss'], ['test-loss', 'test_loss'], ['angle', 'angle_mean']]) {
    const expected = run[name];
    assert.ok(Math.abs(await value(opened, `majority-${id}-0`) - expected) <= 1e-3 * Math.abs(expected), `${name}: ${await value(opened, `majority-${id}-0`)} and ${expected}`);
  }
});

test('Majority: pauses, goes on, resets; same seed, same training', async t => {
  const opened = await view(t, 'other=-&steps=3000');
  const step = async () => Number(/Step (\d+)/.exec(await opened.getByTestId('majority-progress').textContent())[1]);
  const start = await value(opened, 'majority-angle-0');
  await opened.getByTestId('majority-toggle').click();
  await opened.waitForFunction(() => !/^Step 0 /.test(document.querySelector('[data-testid=majority-progress]').textContent));
  await opened.getByTestId('majority-toggle').click();
  await opened.waitForFunction(() => document.querySelector('[data-testid=majority-toggle]').textContent === 'Train');
  const paused = await step();
  await opened.waitForTimeout(100);
  assert.equal(await step(), paused);
  assert.ok(paused > 0 && paused < 3000);
  await opened.getByTestId('majority-toggle').click();
  await trained(opened);
  const loss = await value(opened, 'majority-loss-0');
  await opened.getByTestId('majority-reset').click();
  assert.equal(await value(opened, 'majority-angle-0'), start);
  await opened.getByTestId('majority-toggle').click();
  await trained(opened);
  assert.equal(await value(opened, 'majority-loss-0'), loss);
  await opened.getByTestId('majority-seed-number').fill('12');
  await opened.waitForFunction(() => /seed=12/.test(location.hash));
  assert.notEqual(await value(opened, 'majority-angle-0'), start);
  assert.deepEqual(opened.problems, []);
});

test('Majority: settings stand in the address and come back', async t => {
  const opened = await view(t, '');
  await opened.getByTestId('majority-norm').selectOption('none');
  await opened.getByTestId('majority-other').selectOption('center');
  await opened.getByTestId('majority-seed-number').fill('42');
  const numbers = () => opened.locator('.depth-numbers').textContent();
  const before = await numbers();
  await opened.reload();
  await opened.getByTestId('majority-angle-0').waitFor();
  assert.equal(await opened.getByTestId('majority-norm').inputValue(), 'none');
  assert.equal(await opened.getByTestId('majority-other').inputValue(), 'center');
  assert.equal(await numbers(), before);
});

test('Majority: what cannot be drawn or read gets the sentence of the core', async t => {
  const opened = await view(t, '');
  await opened.getByTestId('majority-lead-number').fill('40');
  await opened.getByTestId('majority-lead-error').waitFor({ state: 'visible' });
  assert.match(await opened.getByTestId('majority-lead-error').textContent(), /has a majority that leads by 40; the margin can be from 1 to 10/);
  await opened.getByTestId('majority-lead-number').fill('2');
  await opened.getByTestId('majority-lead-error').waitFor({ state: 'hidden' });
  for (const query of ['norm=layrnorm', 'seed=x', 'classes=99', 'rate=-1', 'steps=0', 'samples=1']) {
    const wrong = await open(t, page(query));
    await wrong.locator('.control-error:not([hidden])').first().waitFor();
    assert.deepEqual(wrong.problems, [], query);
    await wrong.context().close();
  }
});

test('Majority: figures are saved as SVG and CSV', async t => {
  const opened = await view(t, 'steps=500');
  await opened.getByTestId('majority-toggle').click();
  await trained(opened);
  const saved = async id => {
    const [download] = await Promise.all([opened.waitForEvent('download'), opened.getByTestId(id).click()]);
    return (await readFile(await download.path(), 'utf8')).replaceAll('\r', '');
  };
  for (const figure of ['scene-0', 'scene-1', 'curves']) assert.doesNotMatch(await saved(`majority-${figure}-svg`), /var\(/);
  assert.equal((await saved('majority-curves-csv')).trim().split('\n').length, 1 + 2 * 101);
  assert.equal((await saved('majority-scene-0-csv')).trim().split('\n').length, 1 + 2 * 5);
});

test('Majority: dark and narrow screens need no scrolling sideways', async t => {
  for (const options of [{ width: 390, height: 800 }, { width: 390, height: 800, colorScheme: 'dark' }, { colorScheme: 'dark' }]) {
    const opened = await view(t, '', options);
    assert.ok(await opened.evaluate(() => document.documentElement.scrollWidth <= innerWidth), JSON.stringify(options));
    assert.deepEqual(opened.problems, []);
    await opened.context().close();
  }
});
