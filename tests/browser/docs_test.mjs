// The documentation as a site, opened from a disk: every link leads somewhere, search finds, everyone can read it.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { open, source } from './harness.mjs';

const axe = readFileSync(createRequire(path.join(source, 'web/package.json')).resolve('axe-core/axe.min.js'), 'utf8');
let site;
before(() => {
  site = mkdtempSync(path.join(tmpdir(), 'normscope-docs-'));
  execFileSync('node', [path.join(source, 'web/site/build.mjs'), site]); // fails at a link that leads nowhere
});
after(() => rmSync(site, { recursive: true, force: true }));
const page = (t, name, options) => open(t, path.join(site, name), options);

test('Every page of docs/, every command and every header has its page', () => {
  const pages = new Set(readdirSync(site));
  for (const file of readdirSync(path.join(source, 'docs')).filter(name => name.endsWith('.md')))
    assert.ok(pages.has(file.replace(/\.md$/, '.html')), file);
  for (const command of [
    'keys',
    'scan',
    'vocab',
    'ablate',
    'heatmap',
    'mask',
    'collapse',
    'equilibria',
    'train-majority',
    'train-lm',
    'train-sentiment',
    'paper',
  ])
    assert.ok(pages.has(`reference-${command}.html`), command);
  for (const header of readdirSync(path.join(source, 'include/normscope'))) {
    assert.ok(pages.has(`api-${header.replace(/\.h$/, '')}.html`), header);
  }
});

test('The reference holds every option and every field, the headers every declaration', () => {
  const reference = readFileSync(path.join(site, 'reference-keys.html'), 'utf8');
  const schema = JSON.parse(readFileSync(path.join(source, 'docs/keys.schema.json'), 'utf8'));
  for (const option of ['--norm', '--advice', '--query-norm', '--resume'])
    assert.ok(reference.includes(`<code>${option}`), option);
  for (const [name, field] of Object.entries(schema.properties)) {
    assert.ok(reference.includes(`<code>${name}</code>`), name);
    assert.ok(
      reference.includes(
        field.description
          .replaceAll('&', '&amp;')
          .replaceAll('<', '&lt;')
          .replaceAll('>', '&gt;')
          .replaceAll('"', '&quot;'),
      ),
      name,
    );
  }
  const keys = readFileSync(path.join(site, 'api-keys.html'), 'utf8');
  for (const name of ['verdict', 'keyverdict', 'keyoptions', 'keyset', 'decide_keys', 'decide_key_sets'])
    assert.ok(keys.includes(`<h2 id="${name}">`), name);
  assert.ok(!keys.includes('describe('), 'what describes itself is in the reference');
});

test('Search finds headings before texts, by keyboard alone, and asks for no network', async t => {
  const there = await page(t, 'theory.html');
  await there.keyboard.press('/');
  await there.keyboard.type('score off');
  await there.locator('#found li').first().waitFor();
  assert.match(await there.locator('#found li strong').first().textContent(), /Score offsets/);
  await there.keyboard.press('ArrowDown');
  assert.equal(await there.locator('#found li[aria-selected="true"]').count(), 1);
  await there.keyboard.press('Enter');
  await there.waitForURL(/keys\.html#score-offsets$/);
  await there.locator('#score-offsets').waitFor();
  const top = await there.locator('#score-offsets').evaluate(element => element.getBoundingClientRect().top);
  assert.ok(top >= 40 && top < 160, `the heading is at ${top}`);
  await there.locator('#search').fill('zzqx<b>');
  await there.locator('#found-none', { hasText: 'Nothing is found for “zzqx<b>”' }).waitFor();
  assert.equal(await there.locator('#found-none b').count(), 0);
  await there.keyboard.press('Escape');
  assert.equal(await there.locator('#found-none').isVisible(), false);
  assert.deepEqual(there.problems, []);
  assert.ok(
    there.requests.every(address => address.startsWith('file://')),
    String(there.requests),
  );
});

test('Light and dark can be chosen, and stay chosen on the next page', async t => {
  const there = await page(t, 'index.html', { colorScheme: 'light' });
  const ground = () => there.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await ground();
  await there.locator('#theme').click();
  assert.notEqual(await ground(), light);
  await there.locator('#contents a').nth(1).click();
  await there.waitForURL(/guide\.html$/);
  assert.notEqual(await ground(), light);
});

for (const [name, colorScheme, width] of [
  ['index.html', 'light', 390],
  ['keys.html', 'dark', 390],
  ['reference-scan.html', 'light', 1280],
  ['api-keys.html', 'dark', 1920],
]) {
  test(`${name} is no wider than ${width} px and breaks no rule of axe, ${colorScheme}`, async t => {
    const there = await page(t, name, { colorScheme, width, height: 850 });
    assert.ok((await there.evaluate(() => document.documentElement.scrollWidth)) <= width);
    if (width < 500) {
      assert.equal(await there.locator('#contents').isVisible(), false);
      await there.locator('#menu').click();
      assert.equal(await there.locator('#contents').isVisible(), true);
      assert.ok((await there.evaluate(() => document.documentElement.scrollWidth)) <= width);
    }
    await there.addScriptTag({ content: axe });
    const found = await there.evaluate(() => window.axe.run(document, { preload: false, resultTypes: ['violations'] }));
    assert.deepEqual(
      found.violations.map(each => `${each.id}: ${each.nodes.map(node => node.target).join(' ')}`),
      [],
    );
    assert.deepEqual(there.problems, []);
  });
}
