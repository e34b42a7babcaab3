// Sets of keys that show one fact each, after Brody, Alon and Yahav (2023).
import { spaceKeys } from '../explain/stage';
import type { Setting } from './select_model';

interface Preset {
  id: string;
  name: string;
  fact: string;
  keys: number[][];
  query?: number[];
  norm?: 'none' | 'center' | 'rmsnorm' | 'layernorm';
  chosen?: number;
  lengthens?: boolean; // still the example when the chosen key is longer or shorter
}

const ring = (angles: number[], radii: number[] = []): number[][] =>
  angles.map((degrees, i) =>
    [Math.cos((degrees * Math.PI) / 180), Math.sin((degrees * Math.PI) / 180)].map(
      x => +(x * (radii[i] ?? 1)).toFixed(4),
    ),
  );

// The first is what the Lab opens with: in space, where LayerNorm frees the hidden key. In the plane it leaves two points.
export const presets: Preset[] = [
  {
    id: 'hidden',
    name: 'A hidden key that LayerNorm frees',
    fact: 'Key 2 lies inside the hull of the others: no query gives it the highest score. Projection alone leaves it there; with scaling, or both, every key can be selected.',
    keys: spaceKeys,
    query: [0.9, 0.6, -0.3],
    chosen: 1,
  },
  {
    id: 'neighbour',
    name: 'A long key hides its neighbour',
    fact: 'Lengthen Key 3 and its neighbour Key 2 falls inside the hull: no query gives Key 2 the highest score any more. Scaling restores it.',
    keys: ring([150, 20, 45, 300, 225]),
    query: [1.25, 0.15],
    chosen: 2,
    lengthens: true,
  },
  {
    id: 'inside',
    name: 'Theorem 1: a key inside the hull',
    fact: 'Key 4 is a mixture of the others, so its score is the same mixture of their scores and never above the highest of them.',
    keys: [
      [1.4, -0.6],
      [-0.2, 1.5],
      [-1.3, -0.8],
      [0.1, 0.1],
    ],
    query: [0.1, 0.2],
    chosen: 3,
  },
  {
    id: 'scaling',
    name: 'Scaling: all keys are vertices',
    fact: 'RMSNorm puts all keys at distance √d. On a sphere each key is a vertex of the hull, so each can be selected. Switch scaling off to see how many were hidden.',
    keys: ring([10, 52, 88, 121, 160, 204, 238, 285, 322], [1.6, 0.5, 1.2, 0.4, 1.7, 0.6, 1.5, 0.5, 0.7]),
    norm: 'rmsnorm',
    chosen: 1,
  },
  {
    id: 'layernorm',
    name: 'LayerNorm in space: a circle',
    fact: 'LayerNorm projects the keys onto the plane orthogonal to 1 and scales them to √d: they land on a circle, where every key can be selected.',
    keys: [
      [1.6, 0.2, -0.3],
      [0.5, 0.9, 0.4],
      [-0.4, 1.2, 0.1],
      [-0.9, -0.2, 0.7],
      [0.1, -0.8, 1.1],
      [0.3, 0.1, -0.2],
      [0.8, -1.0, 0.2],
    ],
    query: [0.8, -0.2, 0.4],
    norm: 'layernorm',
    chosen: 5,
  },
  {
    id: 'projection',
    name: 'Projection alone can hide a key',
    fact: 'Key 5 stands out only along 1. Centring removes that direction and leaves it inside the hull of the others; without the norm it is a vertex.',
    keys: [
      [1.2, -0.6, -0.6],
      [-0.6, 1.2, -0.6],
      [-0.6, -0.6, 1.2],
      [-0.4, -0.4, -0.4],
      [0.9, 0.8, 0.7],
    ],
    query: [0.5, 0.6, 0.4],
    norm: 'center',
    chosen: 4,
  },
  {
    id: 'planes',
    name: 'Appendix B: a plane through 1',
    fact: 'All keys lie in the plane spanned by v = (1, 0, 0) and 1. LayerNorm maps that plane to two points, so the keys are tied in two groups.',
    // Chosen so that no step of LayerNorm rounds: the verdicts are exact, and two keys an ulp apart are not tied.
    keys: [
      [1, -0.5, -0.5],
      [1.25, 0.5, 0.5],
      [0.5, -1, -1],
      [-0.75, 0.75, 0.75],
      [0, 0.75, 0.75],
    ],
    query: [1, -0.2, 0.1],
    norm: 'layernorm',
  },
  {
    id: 'majority',
    name: 'Majority: a query along 1',
    fact: 'Projected keys are orthogonal to 1. A query along 1 scores them all 0, so attention averages over the keys, as a majority vote needs.',
    keys: [
      [1.2, 0.1, -0.4],
      [-0.3, 1.1, 0.2],
      [0.2, -0.9, 0.8],
      [-1, 0.3, 0.9],
    ],
    query: [1, 1, 1],
    norm: 'layernorm',
  },
  {
    id: 'edge',
    name: 'Tie: a key on an edge',
    fact: 'Key 4 halves the edge from Key 1 to Key 2. One direction puts it on top, but never alone.',
    keys: [
      [1.25, -0.5],
      [0.25, 1.25],
      [-1, -0.75],
      [0.75, 0.375],
    ],
    query: [0.9, 0.5],
    chosen: 3,
  },
  {
    id: 'equal',
    name: 'Tie: two equal keys',
    fact: 'Keys 1 and 4 are the same vector. They always share their score, so neither is ever strictly highest.',
    keys: [
      [1, 0.5],
      [-1, 0.75],
      [0, -1],
      [1, 0.5],
    ],
    query: [0.9, 0.2],
    chosen: 3,
  },
  {
    id: 'zero',
    name: 'A zero key stays at 0',
    fact: 'Key 3 has no direction to scale and stays at 0, in the middle of the others. Any other number there, however small, would be brought to the sphere, so that rounding decides.',
    keys: [
      [1.2, 0.3],
      [-0.8, 0.9],
      [0, 0],
      [-0.3, -1.1],
    ],
    norm: 'rmsnorm',
    chosen: 2,
  },
  {
    id: 'one',
    name: 'One key alone',
    fact: 'With nothing to compare with, one key is always selected.',
    keys: [[0.8, 0.6]],
  },
];

// What stands in for what an address leaves out.
export const linked = presets.find(({ id }) => id === 'neighbour')!;

// The example these keys are, if they are one.
export function presetOf(keys: number[][]): Preset | undefined {
  const same = (a: number[], b: number[]) => a.length === b.length && a.every((x, c) => x === b[c]);
  const along = (a: number[], b: number[]) => {
    const la = Math.hypot(...a),
      lb = Math.hypot(...b);
    return a.length === b.length && la > 0 && lb > 0 && a.every((x, c) => Math.abs(x / la - b[c]! / lb) < 1e-3);
  };
  return presets.find(
    preset =>
      preset.keys.length === keys.length &&
      preset.keys.every(
        (key, i) => same(key, keys[i]!) || (preset.lengthens && i === preset.chosen && along(key, keys[i]!)),
      ),
  );
}

export function settingOf(preset: Preset): Setting {
  const norm = preset.norm ?? 'none';
  const d = preset.keys[0]!.length;
  return {
    d,
    keys: preset.keys.map(key => [...key]),
    labels: preset.keys.map(() => ''),
    query: preset.query ?? (d === 2 ? [0.7, 0.4] : [0.7, 0.4, 0.2]),
    projection: norm === 'center' || norm === 'layernorm',
    scaling: norm === 'rmsnorm' || norm === 'layernorm',
    temperature: 0.5,
    chosen: preset.chosen ?? 0,
  };
}
