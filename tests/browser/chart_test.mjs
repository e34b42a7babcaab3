// Curves on the page are used as in reports: legends hide and show, panels zoom and come back.
import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';
import { open, webFolder } from './harness.mjs';

async function chart(t) {
  const page = await open(t, path.join(webFolder, 'index.html') + '#collapse?layers=40');
  const drawing = page.getByTestId('collapse-curves').locator('svg');
  await drawing.locator('.entry').first().waitFor();
  return { page, drawing, drawn: () => drawing.evaluate(svg => svg.innerHTML) };
}

test('legend entries of the page are toggles, for pointer and keyboard', async t => {
  const { page, drawing, drawn } = await chart(t);
  const entry = drawing.getByRole('button', { name: 'φ, the least' }), before = await drawn();
  const lines = () => drawing.locator('path[stroke="var(--colour-3)"]').count();
  assert.equal(await lines(), 2);
  await entry.click();
  assert.equal(await entry.getAttribute('aria-pressed'), 'false');
  assert.equal(await lines(), 1);
  await entry.focus();
  await page.keyboard.press('Enter');
  assert.equal(await lines(), 2);
  assert.equal(await entry.evaluate(element => element === document.activeElement), true);
  assert.equal(await drawn(), before);
  await entry.dblclick();
  assert.equal(await drawing.getByRole('button', { name: 'mean' }).getAttribute('aria-pressed'), 'false');
  assert.equal(await entry.getAttribute('aria-pressed'), 'true');
  assert.equal(await drawing.getByRole('button', { name: 'numerical' }).getAttribute('aria-pressed'), 'true');
  await entry.dblclick();
  assert.equal(await drawn(), before);
  assert.deepEqual(page.problems, []);
});

test('panels of the page zoom by a box, the wheel and keys, with ticks of their own, and back', async t => {
  const { page, drawing, drawn } = await chart(t);
  const before = await drawn(), box = await drawing.boundingBox(), layer = await page.getByTestId('collapse-layer').inputValue();
  const at = [box.x + box.width / 2, box.y + 120];
  await page.mouse.move(...at);
  await page.mouse.down();
  await page.mouse.move(at[0] + 80, at[1] + 40, { steps: 4 });
  assert.equal(await drawing.locator('.selection').count(), 1);
  await page.mouse.up();
  assert.equal(await drawing.locator('clipPath').count(), 3);
  assert.equal(await page.getByTestId('collapse-layer').inputValue(), layer); // a box is no click
  assert.doesNotMatch(await drawn(), /NaN|Infinity/);
  await drawing.focus();
  await page.keyboard.press('0');
  assert.equal(await drawn(), before);
  await page.mouse.move(...at);
  await page.keyboard.down('Control');
  await page.mouse.wheel(0, -200);
  await page.keyboard.up('Control');
  await drawing.locator('clipPath').first().waitFor({ state: 'attached' });
  await drawing.focus();
  await page.keyboard.press('-');
  await page.keyboard.press('-');
  assert.equal(await drawn(), before);
  assert.deepEqual(page.problems, []);
});
