// What the core says of a set of keys.
export interface KeyVerdict {
  verdict: 'selectable' | 'tied' | 'unselectable' | 'undecided';
  robust: boolean;
  margin: number;
  depth: number;
  witness: Float64Array;
  exactWitness: string[];
  cover: { index: number; weight: number }[];
  tiedWith: number[];
  exactPath: boolean;
}

// A verdict that numbers rounding to the same ones could change is a tie as far as anyone can tell.
export function stateOf({ verdict, robust }: KeyVerdict): KeyVerdict['verdict'] | 'tied up to rounding' {
  return verdict === 'tied' || verdict === 'undecided' || robust ? verdict : 'tied up to rounding';
}

export interface KeySet {
  rank: number;
  counts: Record<KeyVerdict['verdict'], number>;
  robustCounts: Record<KeyVerdict['verdict'], number>;
  keys: KeyVerdict[];
}

// How many keys are in each state, as the sentence over them counts.
export function countsOf({ keys }: KeySet): Record<ReturnType<typeof stateOf>, number> {
  const counts = { selectable: 0, tied: 0, 'tied up to rounding': 0, unselectable: 0, undecided: 0 };
  for (const key of keys) ++counts[stateOf(key)];
  return counts;
}
