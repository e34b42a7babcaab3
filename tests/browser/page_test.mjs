// The page as a whole: what it weighs, what it asks for, its tabs, theme and address.
import assert from 'node:assert/strict';
import { cpSync, readdirSync, statSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { open, temporaryDirectory, webFolder } from './harness.mjs';
import { serve } from './serve.mjs';

const views = ['explain', 'select', 'collapse', 'equilibria', 'majority'];
const ready = page => page.waitForFunction(() => window.normscope !== undefined);
const width = page => page.evaluate(() => document.documentElement.scrollWidth);

test('The page weighs less than 3.5 MB', () => {
  const files = readdirSync(webFolder, { recursive: true }).map(name => statSync(path.join(webFolder, name))).filter(file => file.isFile());
  assert.ok(files.length > 0);
  assert.ok(files.reduce((sum, file) => sum + file.size, 0) < 3.5e6);
});

test('From any folder of a static server, it shows every view and asks for nothing else', async t => {
  const folder = temporaryDirectory(t);
  cpSync(webFolder, path.join(folder, 'some/where'), { recursive: true });
  const address = (await serve(t, folder)) + 'some/where/';
  const page = await open(t, address);
  await ready(page);
  for (const view of views) {
    await page.locator(`#tab-${view}`).click();
    await page.getByTestId(`${view}-view`).waitFor();
    assert.equal(await page.locator('#tabs [aria-current]').getAttribute('id'), `tab-${view}`);
  }
  assert.deepEqual(page.problems, []);
  assert.deepEqual(page.requests.filter(request => !request.startsWith(address)), []);
  assert.match(await page.locator('#about').textContent(), /^normscope \d+\.\d+\.\d+ /);
});

test('The frame is painted before the core is ready', async t => {
  const page = await open(t, await serve(t, webFolder));
  await ready(page);
  const [paint, core] = await page.evaluate(() =>
    ['first-contentful-paint', 'core ready'].map(name => performance.getEntriesByName(name)[0].startTime));
  assert.ok(paint < core, `first paint after ${paint} ms, the core after ${core} ms`);
});

test('It opens from a disk, with the explanation, and the addresses of the four views open these', async t => {
  const page = await open(t, path.join(webFolder, 'index.html'));
  await page.getByTestId('explain-view').waitFor();
  for (const hash of ['#select?norm=layernorm&key=2', '#collapse?mask=full', '#equilibria?w=3', '#majority?seed=4']) {
    await page.goto('file://' + path.join(webFolder, 'index.html') + hash);
    await page.getByTestId(`${/#(\w+)/.exec(hash)[1]}-view`).waitFor();
    assert.ok(page.url().endsWith(hash));
  }
  assert.deepEqual(page.problems, []);
});

for (const colorScheme of ['light', 'dark']) {
  test(`It follows a ${colorScheme} system, and a click changes and keeps the theme`, async t => {
    const page = await open(t, await serve(t, webFolder), { colorScheme });
    await ready(page);
    const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const grounds = { light: 'rgb(255, 255, 255)', dark: 'rgb(21, 23, 26)' };
    const other = colorScheme === 'light' ? 'dark' : 'light';
    assert.equal(await ground(), grounds[colorScheme]);
    await page.locator('#theme').click();
    assert.equal(await ground(), grounds[other]);
    await page.reload();
    await ready(page);
    assert.equal(await ground(), grounds[other]);
  });
}

test('On a small screen no view is wider than the screen', async t => {
  const page = await open(t, await serve(t, webFolder), { width: 390, height: 800 });
  await ready(page);
  for (const view of views) {
    await page.locator(`#tab-${view}`).click();
    await page.getByTestId(`${view}-view`).waitFor();
    assert.ok((await width(page)) <= 390, `${view} is ${await width(page)} wide`);
  }
});

for (const screen of [390, 1280, 1920]) {
  test(`No choice of the Lab is cut off at a width of ${screen}`, async t => {
    const page = await open(t, await serve(t, webFolder), { width: screen, height: 844 });
    await ready(page);
    for (const view of views.slice(1)) {
      await page.locator(`#tab-${view}`).click();
      await page.getByTestId(`${view}-view`).waitFor();
      // Free of the width it is given, a select is as wide as its longest choice.
      const cut = await page.getByTestId(`${view}-view`).locator('select:visible').evaluateAll(selects => selects.flatMap(select => {
        const given = select.getBoundingClientRect().width;
        const free = select.cloneNode(true);
        free.style.cssText = 'position: absolute; width: auto; flex: none; min-width: 0';
        select.after(free);
        const needed = free.getBoundingClientRect().width;
        free.remove();
        return needed > given + 0.5 ? [`${select.id}: ${given} of ${needed}`] : [];
      }));
      assert.deepEqual(cut, [], view);
    }
  });
}

test('On a wide screen the Lab uses it', async t => {
  const page = await open(t, await serve(t, webFolder), { width: 1920, height: 1000 });
  await ready(page);
  for (const view of views) {
    await page.locator(`#tab-${view}`).click();
    await page.getByTestId(`${view}-view`).waitFor();
    const used = await page.getByTestId(`${view}-view`).evaluate(element => element.getBoundingClientRect().width);
    assert.ok(used >= 1650, `${view} is ${used} wide`);
    assert.ok((await width(page)) <= 1920, view);
  }
  await page.locator('#tab-select').click();
  const figure = await page.getByTestId('figure').evaluate(element => element.getBoundingClientRect().width);
  assert.ok(figure > 620, `the figure is ${figure} wide`);
});

test('Back and forward walk through the views', async t => {
  const page = await open(t, await serve(t, webFolder));
  await ready(page);
  await page.locator('#tab-collapse').click();
  await page.getByTestId('collapse-view').waitFor();
  await page.locator('#tab-equilibria').click();
  await page.getByTestId('equilibria-view').waitFor();
  await page.goBack();
  await page.getByTestId('collapse-view').waitFor();
  await page.goForward();
  await page.getByTestId('equilibria-view').waitFor();
});

test('An unknown view, and nonsense behind a known one, show a page all the same', async t => {
  const address = await serve(t, webFolder);
  for (const hash of ['#nothing', '#select?keys=1,2;a,b&norm=%00&temperature=-1&key=99&labels=%25', '#select?keys=&query=1e999,1', '#%%%?%']) {
    const page = await open(t, address + hash);
    await page.getByTestId('select-view').waitFor();
    assert.equal(await page.getByTestId('count-selectable').textContent(), '5');
    assert.deepEqual(page.problems, []);
  }
});
