// What the view Select shows: the keys, what the reader set, and what the core says about them.
import { call, type Core } from '../core';
import type { State } from '../view';

export interface Setting {
  d: number; // 2 or 3
  keys: number[][]; // before the norm
  labels: string[];
  query: number[];
  projection: boolean;
  scaling: boolean;
  temperature: number;
  chosen: number; // the key whose magnitude the slider moves and whose certificate is drawn
}

export interface KeyVerdict {
  verdict: 'selectable' | 'tied' | 'unselectable';
  robust: boolean;
  margin: number;
  depth: number;
  witness: Float64Array;
  exactWitness: string[];
  cover: { index: number; weight: number }[];
  tiedWith: number[];
  exactPath: boolean;
}

export interface KeySet {
  rank: number;
  counts: Record<KeyVerdict['verdict'], number>;
  robustCounts: Record<KeyVerdict['verdict'], number>;
  keys: KeyVerdict[];
}

export interface Arc {
  keys: number[];
  from: number;
  to: number;
}

export interface Answer {
  normed: number[][];
  undefinedRows: number; // rows the scaling leaves at 0
  set: KeySet;
  scores: Float64Array;
  weights: Float64Array;
  arcs: Arc[]; // in the plane
  edges: [number, number][]; // of the hull
}

export const mostKeys = 24;
export const largest = 100; // of a coordinate that can be set here

export function normName(setting: { projection: boolean; scaling: boolean }): string {
  return setting.projection ? (setting.scaling ? 'layernorm' : 'center') : setting.scaling ? 'rmsnorm' : 'none';
}

export function rowsOf(values: ArrayLike<number>, n: number, d: number): number[][] {
  return Array.from({ length: n }, (_, i) => Array.from({ length: d }, (_, c) => values[i * d + c]!));
}

// Divided by the largest magnitude: no sum of squares, of differences or of the values overflows or vanishes.
export function scaled(values: Float64Array): Float64Array {
  let most = 0;
  for (const value of values) most = Math.max(most, Math.abs(value));
  return most > 0 && most < Infinity ? values.map(value => value / most) : values;
}

export function compute(core: Core, setting: Setting): Answer {
  const { keys, d, query, temperature } = setting;
  const n = keys.length;
  const normed = call<{ values: Float64Array; zeroRows: number; constantRows: number }>(core, 'normalize', keys.flat(), n, d, normName(setting));
  const set = call<KeySet>(core, 'decideKeys', normed.values, n, d, 2 ** -53);
  const { scores, weights } = call<{ scores: Float64Array; weights: Float64Array }>(core, 'attention', normed.values, n, d, query, temperature);
  let arcs: Arc[] = [], edges: [number, number][];
  if (d === 2) {
    const kinds = set.keys.map(key => ['selectable', 'tied', 'unselectable'].indexOf(key.verdict));
    const fan = call<{ arcs: Arc[]; polygon: number[] }>(core, 'fan', normed.values, n, kinds);
    arcs = fan.arcs;
    edges = fan.polygon.map((key, i) => [key, fan.polygon[(i + 1) % fan.polygon.length]!]);
  } else {
    edges = call<[number, number][]>(core, 'hullEdges', normed.values, n);
  }
  return { normed: rowsOf(normed.values, n, d), undefinedRows: setting.scaling ? normed.zeroRows + normed.constantRows : 0, set, scores, weights, arcs, edges };
}

export const labelOf = (setting: { labels: string[] }, index: number): string => setting.labels[index] || `Key ${index + 1}`;

const short = (value: number): string => String(+value.toPrecision(12));

export function writeSetting(state: State, setting: Setting, replace = true): void {
  state.set(
    {
      keys: setting.keys.map(key => key.map(short).join(',')).join(';'),
      labels: setting.labels.some(Boolean) ? setting.labels.map(encodeURIComponent).join(';') : null,
      query: setting.query.map(short).join(','),
      norm: normName(setting),
      temperature: short(setting.temperature),
      key: String(setting.chosen + 1),
    },
    { replace },
  );
}

// Reads the address; whatever does not make sense there falls back to `fallback`.
export function readSetting(state: State, fallback: Setting): Setting {
  const vector = (text: string): number[] => text.split(',').map(part => (part.trim() === '' ? NaN : Number(part)));
  const fits = (values: number[], d: number) => values.length === d && values.every(value => Math.abs(value) <= largest);
  const text = state.get('keys', '');
  let keys = text ? text.split(';').slice(0, mostKeys).map(vector) : fallback.keys;
  const d = keys[0]!.length;
  if ((d !== 2 && d !== 3) || !keys.every(key => fits(key, d))) keys = fallback.keys;
  const dimension = keys[0]!.length;
  const query = vector(state.get('query', ''));
  const norm = state.get('norm', normName(fallback));
  const temperature = Number(state.get('temperature', String(fallback.temperature)));
  const chosen = Number(state.get('key', String(fallback.chosen + 1))) - 1;
  const labels = state.get('labels', '').split(';').map(label => {
    try {
      return decodeURIComponent(label).slice(0, 40);
    } catch {
      return '';
    }
  });
  return {
    d: dimension,
    keys: keys.map(key => [...key]),
    labels: keys.map((_, i) => labels[i] ?? ''),
    query: fits(query, dimension) ? query : Array.from({ length: dimension }, (_, c) => fallback.query[c] ?? 0),
    projection: norm === 'center' || norm === 'layernorm',
    scaling: norm === 'rmsnorm' || norm === 'layernorm',
    temperature: temperature >= 0.05 && temperature <= 5 ? temperature : fallback.temperature,
    chosen: Number.isInteger(chosen) && chosen >= 0 && chosen < keys.length ? chosen : 0,
  };
}
