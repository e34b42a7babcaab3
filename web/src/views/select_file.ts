// Keys from a reader's file: read by the core, as if written by an enemy.
import { call, type Core } from '../core';
import { svg } from '../kit/elements';
import { fileLabel, rowsOf, scaled, type KeySet } from './select_model';

export interface FileKeys {
  name: string;
  dtype: string;
  n: number;
  d: number;
  values: Float64Array;
  unitRoundoff: number;
  smallestRounding: number;
}

const mostKeys = 4096,
  mostNumbers = 1 << 20,
  mostBytes = 64 << 20;

export async function readKeys(core: Core, file: File): Promise<FileKeys> {
  if (file.size > mostBytes)
    throw new Error(
      `${file.name} has ${(file.size / 2 ** 20).toFixed(0)} MB; the page takes up to 64. The program normscope keys takes any size.`,
    );
  const bytes = new Uint8Array(await file.arrayBuffer());
  const { shape, dtype, values, unitRoundoff, smallestRounding } = call<{
    shape: number[];
    dtype: string;
    values: Float64Array;
    unitRoundoff: number;
    smallestRounding: number;
  }>(core, 'readArray', bytes, file.name);
  const [n, d] = shape;
  if (shape.length !== 2 || !n || !d)
    throw new Error(
      `${file.name} holds an array of shape (${shape.join(', ')}); the page needs a matrix with one key per row.`,
    );
  if (n > mostKeys || n * d > mostNumbers)
    throw new Error(
      `${file.name} holds ${n} keys of dimension ${d}; the page decides up to ${mostKeys} keys and ${mostNumbers} numbers. The program normscope keys takes any number.`,
    );
  return { name: file.name, dtype, n, d, values, unitRoundoff, smallestRounding };
}

export interface FileAnswer {
  normed: number[][];
  set: KeySet;
  undefinedRows: number;
  flat: number[][]; // n × 2, along the two principal directions
  share: number; // of the variance
}

export function decideFile(core: Core, file: FileKeys, norm: string): FileAnswer {
  const { values, undefinedRows, set } = call<{ values: Float64Array; undefinedRows: number; set: KeySet }>(
    core,
    'decideNormed',
    file.values,
    file.n,
    file.d,
    norm,
    file.unitRoundoff,
    file.smallestRounding,
  );
  // The picture needs ratios only. Of keys near 1e308 a sum or a difference overflows, so they are scaled before either.
  const { coordinates, share } = call<{ coordinates: Float64Array; share: number }>(
    core,
    'principal',
    scaled(values),
    file.n,
    file.d,
    2,
  );
  return {
    normed: rowsOf(values, file.n, file.d),
    set,
    share,
    flat: rowsOf(coordinates, file.n, 2),
    undefinedRows: norm === 'rmsnorm' || norm === 'layernorm' ? undefinedRows : 0,
  };
}

// Dots along the two principal directions: a shadow of the keys, not their hull.
export function drawShadow(figure: SVGSVGElement, { flat, set }: FileAnswer): void {
  const size = 560,
    room = 250;
  const furthest = Math.max(1e-300, ...flat.flat().map(Math.abs));
  figure.setAttribute('viewBox', `0 0 ${size} ${size}`);
  const marks = { selectable: 'var(--colour-1)', tied: 'var(--colour-5)', unselectable: 'none', undecided: 'none' };
  figure.replaceChildren(
    svg('line', { x1: 20, y1: size / 2, x2: size - 20, y2: size / 2, class: 'axis' }),
    svg('line', { x1: size / 2, y1: 20, x2: size / 2, y2: size - 20, class: 'axis' }),
    ...flat.map(([x, y], i) => {
      const verdict = set.keys[i]!.verdict;
      return svg(
        'circle',
        {
          cx: size / 2 + (x! / furthest) * room,
          cy: size / 2 - (y! / furthest) * room,
          r: 4.5,
          fill: marks[verdict],
          stroke: marks[verdict] === 'none' ? 'var(--colour-2)' : marks[verdict],
          'stroke-width': 1.5,
        },
        svg('title', {}, `${fileLabel(i)}: ${verdict}`),
      );
    }),
    svg(
      'text',
      { x: size - 20, y: size / 2 - 8, 'text-anchor': 'end', class: 'axis-name' },
      'first principal direction',
    ),
    svg('text', { x: size / 2 + 8, y: 26, class: 'axis-name' }, 'second'),
  );
}
