// normscope serve as a person sees it: the list, a run, its curves while it trains, its report.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import { normscope, open, program, temporaryDirectory, webFolder } from './harness.mjs';

// The server's address; it is ended after the test, and must end with 0.
async function serve(t, ...args) {
  const server = spawn(program, ['serve', ...args, '--port', '0', '--json'], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(async () => {
    server.kill('SIGTERM');
    const [code] = server.exitCode === null ? await once(server, 'exit') : [server.exitCode];
    assert.equal(code, 0);
  });
  const [line] = await once(server.stdout, 'data');
  return JSON.parse(line).address;
}

const own = (page, address) => {
  assert.deepEqual(page.requests.filter(asked => !asked.startsWith(address)), []);
  assert.deepEqual(page.problems, []);
};

const evil = '<script>alert(1)</script>';  // two directories, one inside the other
function runs(t) {
  const root = temporaryDirectory(t);
  normscope('mask', 'full', 'causal', '--n', '12', '--out', path.join(root, 'masks'), '--quiet');
  normscope('heatmap', '--n', '3:8', '--d', '2:4', '--draws', '2', '--out', path.join(root, evil), '--quiet');
  return root;
}

test('lists runs, filters them, and shows a hostile name as text', async t => {
  const address = await serve(t, runs(t));
  const page = await open(t, address);
  page.on('dialog', () => page.problems.push('a script of a name ran'));
  assert.equal(await page.locator('#runs tbody tr').count(), 2);
  assert.equal(await page.locator('#runs tbody tr a').first().textContent(), evil);
  await page.fill('#filter', 'MASK causal');
  assert.deepEqual(await page.locator('#runs tbody tr:visible a').allTextContents(), ['masks']);
  assert.equal(await page.textContent('#count'), '1 of 2 runs');
  await page.fill('#filter', '');
  await page.click(`text=${evil}`);
  assert.equal(await page.textContent('h1'), evil);
  await page.locator('img').first().evaluate(image => image.decode());
  own(page, address);
});

test('the interactive page runs under the policy of the server', async t => {
  const address = await serve(t, runs(t), '--page', webFolder);
  const page = await open(t, address + 'page/#select');
  await page.waitForSelector('table tbody tr');
  assert.match(await page.textContent('main'), /selectable/);
  for (const view of ['collapse', 'equilibria', 'majority']) {
    await page.click(`#tab-${view}`);
    await page.waitForSelector('main svg');
  }
  own(page, address);
});

test('opens a report, whose buttons work but which cannot look around', async t => {
  const address = await serve(t, runs(t));
  const page = await open(t, address + 'run/0/masks/');
  await page.locator('img').first().evaluate(image => image.decode());  // leaving before would cancel its request
  await page.click('text=Open the report');
  await page.waitForSelector('figure svg');
  const [download] = await Promise.all([page.waitForEvent('download'), page.click('text=Download SVG')]);
  assert.match(download.suggestedFilename(), /\.svg$/);
  own(page, address);
  assert.equal(await page.evaluate(() => self.origin), 'null');
  assert.equal(await page.evaluate(() => fetch('/').then(() => 'read', () => 'refused')), 'refused');
});

test('curves grow while a training runs, and its end is noticed', async t => {
  const root = temporaryDirectory(t);
  const out = path.join(root, 'training');
  const training = spawn(program, ['train', 'majority', '--norm', 'layernorm,rmsnorm', '--seeds', '2', '--classes', '5',
    '--length', '20', '--samples', '2000', '--steps', '1000000', '--evaluate-every', '25', '--out', out, '--quiet'],
  { stdio: 'ignore' });
  t.after(() => training.kill('SIGKILL'));
  const address = await serve(t, root);
  const list = await open(t, address);
  await list.waitForSelector('.state.running', { timeout: 30000 });  // found without a reload
  await list.click('text=training');
  const lines = () => list.locator('#drawing').evaluate(drawing => Number(drawing.dataset.lines));
  await list.waitForSelector('#drawing svg');
  const before = await lines();
  await list.waitForFunction(old => Number(document.getElementById('drawing').dataset.lines) > old + 8, before,
    { timeout: 60000 });
  assert.equal(await list.locator('#name option').count(), 3);
  assert.equal(await list.locator('#seed option').count(), 4);
  const shown = () => list.locator('#drawing path[stroke-width="1.8"]').count();
  assert.equal(await shown(), 2 * 8);
  await list.selectOption('#seed', 'each');
  await list.waitForFunction(() => document.querySelectorAll('#drawing path[stroke-width="1.8"]').length === 4 * 8);
  await list.selectOption('#name', 'rmsnorm');
  await list.waitForFunction(() => document.querySelectorAll('#drawing path[stroke-width="1.8"]').length === 2 * 8);
  training.kill('SIGKILL');
  await list.waitForSelector('#head .state.stopped', { timeout: 30000 });
  own(list, address);
});

test('a log with a torn line and hostile names is drawn', async t => {
  const root = temporaryDirectory(t);
  const run = path.join(root, 'odd');
  mkdirSync(run);
  writeFileSync(path.join(run, 'config.json'), '{"program":"normscope","command":"train <b>"}');
  writeFileSync(path.join(run, 'metrics.jsonl'), [0, 1, 2].map(step => JSON.stringify(
    { step, norm: '</title><script>alert(1)</script>', seed: 1, '<img src=x>': step })).join('\n') + '\n{"step":3,"no');
  const address = await serve(t, root);
  const page = await open(t, address + 'run/0/odd/', { colorScheme: 'dark', width: 390 });
  await page.waitForSelector('#drawing svg');
  assert.equal(await page.locator('#drawing').evaluate(drawing => drawing.dataset.lines), '3');
  assert.equal(await page.locator('#drawing script, #drawing img, main b').count(), 0);
  own(page, address);
});

test('follows the colour scheme and fits a phone', async t => {
  const address = await serve(t, runs(t));
  const ground = {};
  for (const colorScheme of ['light', 'dark']) {
    for (const where of ['', 'run/0/masks/']) {
      const page = await open(t, address + where, { colorScheme, width: 390, height: 800 });
      ground[colorScheme] = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), where);
      own(page, address);
    }
  }
  assert.notEqual(ground.light, ground.dark);
});
