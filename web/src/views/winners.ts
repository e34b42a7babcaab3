// The sphere of directions as a picture: each pixel in the colour of the key that wins there, with borders between regions and a
// place in each for its number: colours repeat, and not everyone sees them.
import { call, type Core } from '../core';
import { html } from '../kit/elements';
import { unproject, type Camera } from '../kit/scene3d';

const pixels = 256,
  outside = 255; // of the disc
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

export interface Region {
  key: number;
  x: number; // of the place furthest from its borders, in radii from the centre, to the right and up
  y: number;
}
const roomOfNumber = 15; // pixels from there to the nearest border, along rows and columns

// What each canvas holds: it is painted again only if keys, view or theme have changed.
const painted = new WeakMap<HTMLCanvasElement, { wanted: string; regions: Region[] }>();

// How far each pixel is from one that another key has, in steps along rows and columns.
function stepsToBorder(won: Uint8Array): Uint16Array {
  const steps = new Uint16Array(won.length);
  for (const back of [false, true]) {
    const by = back ? 1 : -1;
    for (let k = 0; k < won.length; ++k) {
      const i = back ? won.length - 1 - k : k,
        x = (i % pixels) + by,
        y = Math.floor(i / pixels) + by;
      const over = (inside: boolean, j: number): number => (inside && won[j] === won[i] ? steps[j]! + 1 : 1);
      const nearest = Math.min(over(x >= 0 && x < pixels, i + by), over(y >= 0 && y < pixels, i + by * pixels));
      steps[i] = back ? Math.min(steps[i]!, nearest) : nearest;
    }
  }
  return steps;
}

export function paintWinners(
  core: Core,
  canvas: HTMLCanvasElement,
  camera: Camera,
  keys: number[][],
  colours: string[],
): Region[] {
  const frame = [...unproject(camera, [1, 0, 0]), ...unproject(camera, [0, 1, 0]), ...unproject(camera, [0, 0, 1])];
  const wanted = [themeName(), ...keys.flat(), ...frame].join();
  const before = painted.get(canvas);
  if (before?.wanted === wanted) return before.regions;
  if (canvas.width !== pixels) canvas.width = canvas.height = pixels;
  const context = canvas.getContext('2d')!,
    image = context.createImageData(pixels, pixels),
    shades = colours.map(numbersOf);
  const won = call<Uint8Array>(core, 'winnerSphere', keys.flat(), keys.length, frame, pixels);
  const steps = stepsToBorder(won);
  const middles = new Map<number, number>(); // of a key, the pixel furthest from its borders
  for (let i = 0; i < won.length; ++i) {
    const key = won[i]!;
    if (key === outside) continue;
    if (steps[i]! > steps[middles.get(key) ?? i]! || !middles.has(key)) middles.set(key, i);
    if (i >= pixels && [i - 1, i - pixels].some(j => won[j] !== key && won[j] !== outside)) continue; // a border
    const [r, g, b] = shades[key] ?? [128, 128, 128]; // several share the highest score
    image.data.set([r, g, b, 225], 4 * i);
  }
  context.putImageData(image, 0, 0);
  const regions = [...middles]
    .filter(([key, i]) => key < keys.length && steps[i]! >= roomOfNumber)
    .map(([key, i]) => ({
      key,
      x: (2 * ((i % pixels) + 0.5)) / pixels - 1,
      y: 1 - (2 * (Math.floor(i / pixels) + 0.5)) / pixels,
    }));
  painted.set(canvas, { wanted, regions });
  return regions;
}
