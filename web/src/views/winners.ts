// The sphere of directions as a picture: each pixel in the colour of the key that wins there.
import { call, type Core } from '../core';
import { html } from '../kit/elements';
import { unproject, type Camera } from '../kit/scene3d';

const pixels = 256;
const dark = matchMedia('(prefers-color-scheme: dark)');
// Paper is light. Before printing begins the style sheet of the screen still holds, so that this must be known by itself.
let onPaper = false;
addEventListener('beforeprint', () => (onPaper = true));
addEventListener('afterprint', () => (onPaper = false));
const themeName = (): string =>
  onPaper ? 'light' : (document.documentElement.dataset.theme ?? (dark.matches ? 'dark' : 'light'));

// A colour of the style sheet as numbers, once per theme.
const known = new Map<string, [number, number, number]>();
function numbersOf(colour: string): [number, number, number] {
  const name = `${themeName()} ${colour}`;
  let found = known.get(name);
  if (!found) {
    const probe = html('span', { style: `color-scheme: ${themeName()}; color: ${colour}` });
    document.body.append(probe);
    const parts = getComputedStyle(probe)
      .color.match(/[\d.]+/g)!
      .map(Number);
    probe.remove();
    known.set(name, (found = [parts[0]!, parts[1]!, parts[2]!]));
  }
  return found;
}

// What each canvas holds: it is painted again only if keys, view or theme have changed.
const painted = new WeakMap<HTMLCanvasElement, string>();

export function paintWinners(
  core: Core,
  canvas: HTMLCanvasElement,
  camera: Camera,
  keys: number[][],
  colours: string[],
): void {
  const frame = [...unproject(camera, [1, 0, 0]), ...unproject(camera, [0, 1, 0]), ...unproject(camera, [0, 0, 1])];
  const wanted = [themeName(), ...keys.flat(), ...frame].join();
  if (painted.get(canvas) === wanted) return;
  painted.set(canvas, wanted);
  if (canvas.width !== pixels) canvas.width = canvas.height = pixels;
  const context = canvas.getContext('2d')!,
    image = context.createImageData(pixels, pixels),
    shades = colours.map(numbersOf);
  const won = call<Uint8Array>(core, 'winnerSphere', keys.flat(), keys.length, frame, pixels);
  for (let i = 0; i < won.length; ++i) {
    const key = won[i]!;
    if (key === 255) continue; // outside the disc
    const [r, g, b] = shades[key] ?? [128, 128, 128]; // several share the highest score
    image.data.set([r, g, b, 225], 4 * i);
  }
  context.putImageData(image, 0, 0);
}
