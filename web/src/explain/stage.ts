// The keys of the story, on their way through a norm, and what the core says of them.
import { call, type Core } from '../core';
import { rowsOf, stateOf, type Arc, type KeySet } from '../views/select_model';

export { stateOf };

// In space, where LayerNorm leaves a plane: Key 2 is inside the hull of the others, before and after the projection.
export const spaceKeys = [
  [-0.2, 1.1, -0.7],
  [0.5, -0.3, -0.1],
  [1.3, 0.1, -2],
  [0.7, -0.9, 1],
  [-1.4, -0.4, 0.4],
];
// In the plane, where it leaves a line; Key 3 has length 1 and a slider.
export const planeKeys = [
  [-0.87, 0.5],
  [0.84, 0.36],
  [0.62, 0.79],
  [0.5, -0.87],
  [-0.91, -0.42],
];
export const hidden = 1; // Key 2
export const long = 2; // Key 3

export interface Setting {
  keys: number[][];
  query: number[];
  projected: number; // of the way, 0 to 1
  scaled: number;
}

export interface Stage {
  keys: number[][];
  set: KeySet;
  scores: Float64Array;
  weights: Float64Array;
  ranks: number[];
  shadows: number[][];
  edges: [number, number][];
  arcs: Arc[]; // in the plane
}

const temperature = 0.5;

export function stageOf(core: Core, { keys, query, projected, scaled }: Setting): Stage {
  const n = keys.length,
    d = keys[0]!.length;
  const told = call<{
    keys: Float64Array;
    set: KeySet;
    scores: Float64Array;
    weights: Float64Array;
    ranks: number[];
    shadows: Float64Array;
    edges?: [number, number][];
    fan?: { arcs: Arc[]; polygon: number[] };
  }>(core, 'stage', { n, d, keys: keys.flat(), query, projected, scaled, temperature });
  const polygon = told.fan?.polygon ?? [];
  return {
    ...told,
    keys: rowsOf(told.keys, n, d),
    shadows: rowsOf(told.shadows, n, d),
    arcs: told.fan?.arcs ?? [],
    edges: told.edges ?? polygon.map((key, i) => [key, polygon[(i + 1) % polygon.length]!]),
  };
}

export const nameOf = (key: number): string => `Key ${key + 1}`;
export const keyColour = (key: number): string => `var(--key-${key + 1})`;

// "Key 1", "Keys 1 and 4", "Keys 1, 4 and 5"
export function listed(keys: number[]): string {
  const numbers = keys.map(key => String(key + 1));
  const last = numbers.pop()!;
  return numbers.length === 0 ? `Key ${last}` : `Keys ${numbers.join(', ')} and ${last}`;
}

// The verdicts in a sentence.
export function headline({ set }: Stage): string {
  const by = new Map<string, number[]>();
  set.keys.forEach((key, i) => by.set(stateOf(key), [...(by.get(stateOf(key)) ?? []), i]));
  const told = (state: string, one: string, many: string): string[] => {
    const keys = by.get(state);
    return keys ? [`${listed(keys)} ${keys.length === 1 ? one : many}`] : [];
  };
  if (by.get('selectable')?.length === set.keys.length) return 'Every key can be selected.';
  return (
    [
      ...told('unselectable', 'can never be selected', 'can never be selected'),
      ...told('tied', 'is tied: on top, but never alone', 'are tied: on top, but never alone'),
      ...told(
        'tied up to rounding',
        'is tied up to rounding: no query tells it apart from its neighbours',
        'are tied up to rounding: no query tells them apart from their neighbours',
      ),
    ].join('. ') + '.'
  );
}
