// The shell: tabs, theme, and the address as the one place where the state of a view is kept.
import './style.css';
import { loadCore, type Core } from './core';
import { addressOf, parseAddress } from './address';
import { rememberTheme } from './kit/theme';
import type { State, View } from './view';

import explain from './explain/explain';
import collapse from './views/collapse';
import equilibria from './views/equilibria';
import majority from './views/majority';
import select from './views/select';

const views: View[] = [explain, select, collapse, equilibria, majority];

const root = document.getElementById('view')!;
const tabs = document.getElementById('tabs')!;
let mounted: { view: View; unmount: () => void; changed: (() => void)[] } | undefined;
let shown = ''; // the address as last written or acted on

function stateOf(view: View, changed: (() => void)[]): State {
  const values = () => parseAddress(location.hash).values;
  return {
    get: (key, fallback) => values().get(key) ?? fallback,
    set(entries, options = {}) {
      if (mounted?.view !== view) return; // a late answer of a view that is gone
      const next = values();
      for (const [key, value] of Object.entries(entries)) {
        if (value === null || value === '') next.delete(key);
        else next.set(key, value);
      }
      const address = addressOf(view.id, next);
      if (address === location.hash) return;
      shown = address;
      if (options.replace === false) history.pushState(null, '', address);
      else history.replaceState(null, '', address);
    },
    onChange: callback => changed.push(callback),
  };
}

function show(core: Core): void {
  if (mounted && location.hash === shown) return;
  const { id } = parseAddress(location.hash);
  // Without an address the explanation; an unknown one is told in Select, as it always was.
  const view = views.find(candidate => candidate.id === id) ?? (id === '' ? explain : select);
  shown = location.hash;
  if (mounted?.view === view && mounted.changed.length > 0) {
    for (const callback of mounted.changed) callback();
    return;
  }
  mounted?.unmount();
  root.replaceChildren();
  const changed: (() => void)[] = [];
  mounted = { view, unmount: () => {}, changed };
  for (const tab of tabs.children) {
    if (tab.id === `tab-${view.id}`) tab.setAttribute('aria-current', 'page');
    else tab.removeAttribute('aria-current');
  }
  document.title = view === explain ? 'Some keys can never be selected · Normscope' : `${view.label} · Normscope`;
  document.body.dataset.view = view.id;
  try {
    mounted.unmount = view.mount(root, { core, state: stateOf(view, changed) });
  } catch (error) {
    fail(error);
  }
}

function fail(error: unknown): void {
  const message = document.createElement('p');
  message.className = 'failure';
  message.setAttribute('role', 'alert');
  message.textContent = error instanceof Error ? error.message : String(error);
  root.replaceChildren(message);
}

function theme(): void {
  const button = document.getElementById('theme')!;
  const system = matchMedia('(prefers-color-scheme: dark)');
  const current = () => document.documentElement.dataset.theme ?? (system.matches ? 'dark' : 'light');
  const label = () => (button.textContent = current() === 'dark' ? '☀ Light' : '☾ Dark');
  button.addEventListener('click', () => {
    const next = current() === 'dark' ? 'light' : 'dark';
    document.documentElement.dataset.theme = next;
    rememberTheme(next);
    label();
  });
  system.addEventListener('change', label);
  label();
}

// The core asks for a frame first, so that the page is there before the megabyte of WebAssembly is compiled.
const nextFrame = () => new Promise<void>(resolve => requestAnimationFrame(() => setTimeout(resolve)));

async function start(): Promise<void> {
  theme();
  document.querySelector('.skip')!.addEventListener('click', event => {
    event.preventDefault(); // the address holds the state
    root.focus();
  });
  await nextFrame();
  const core = await loadCore();
  performance.mark('core ready');
  document.getElementById('about')!.textContent = (core.about as () => string)();
  window.addEventListener('popstate', () => show(core));
  window.addEventListener('hashchange', () => show(core));
  // For the console, and for tests that compare the core with the native program.
  (window as unknown as { normscope: Core }).normscope = core;
  show(core);
}

start().catch(fail);
