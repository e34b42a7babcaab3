// What a view of the page is. A view draws into `root`, reads and writes its settings through `state`, and takes
// every number from the C++ core.
import type { Core } from './core';

export interface View {
  readonly id: string; // the part of the address before '?'
  readonly label: string; // on the tab
  mount(root: HTMLElement, context: ViewContext): () => void; // returns unmount
}

export interface ViewContext {
  core: Core;
  state: State;
}

// The settings of one view, kept in the address (#select?norm=layernorm&…), so that a copied link shows the same
// page. What stands there was written by anyone: a view checks what it reads.
export interface State {
  get(key: string, fallback: string): string;
  // null, or the empty string, takes a key out of the address. `replace` (the default) edits the present entry of
  // the history; false starts a new one, to which the reader can go back.
  set(values: Record<string, string | null>, options?: { replace?: boolean }): void;
  // Called when the address changed otherwise than through set: back, forward, an edited address. Ends at unmount.
  onChange(callback: () => void): void;
}
