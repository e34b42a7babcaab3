// The server draws; this script asks for what is new and swaps it in: curves of a run while its log grows, the list
// of runs, the facts of a run when its state changes. Nothing is built from text here, so nothing needs escaping.
'use strict';

const second = 1000;
const sleep = time => new Promise(resolve => setTimeout(resolve, time));
const visible = () => !document.hidden;

// Replaces the parts of this page that are marked for it by those of a new copy.
async function refresh() {
  const answer = await fetch(location.pathname);
  if (!answer.ok) return;
  const copy = new DOMParser().parseFromString(await answer.text(), 'text/html');
  for (const part of document.querySelectorAll('[data-refresh]')) {
    const fresh = copy.getElementById(part.id);
    if (fresh && fresh.innerHTML !== part.innerHTML) part.replaceChildren(...fresh.childNodes);
  }
  filterRuns();
}

function filterRuns() {
  const filter = document.getElementById('filter');
  if (!filter) return;
  const words = filter.value.toLowerCase().split(/\s+/).filter(word => word);
  const rows = [...document.querySelectorAll('#runs tbody tr')];
  let shown = 0;
  for (const row of rows) {
    const text = [...row.cells].map(cell => cell.textContent).join(' ').toLowerCase();
    row.hidden = !words.every(word => text.includes(word));
    shown += !row.hidden;
  }
  document.getElementById('count').textContent = words.length ? `${shown} of ${rows.length} runs` : `${rows.length} runs`;
}

async function watchList() {
  document.getElementById('filter').addEventListener('input', filterRuns);
  filterRuns();
  for (;;) {
    await sleep(5 * second);
    if (visible()) await refresh().catch(() => {});
  }
}

// Adds what is new to a menu; what is there stays, and so does the choice.
function offer(menu, values) {
  const known = new Set([...menu.options].map(option => option.value));
  for (const value of values) if (!known.has(value)) menu.add(new Option(value, value));
}

async function watchCurves(section) {
  const seed = document.getElementById('seed'), name = document.getElementById('name');
  const drawing = document.getElementById('drawing'), pulse = document.getElementById('pulse');
  let next = '', state = document.querySelector('#head .state').textContent, wake = () => {};
  const anew = () => { next = ''; wake(); };
  seed.addEventListener('change', anew);
  name.addEventListener('change', anew);
  document.addEventListener('visibilitychange', () => wake());
  followHints(drawing);
  for (;;) {
    let pause = 10 * second;
    if (visible() || !next) {
      try {
        const asked = new URLSearchParams({ seed: seed.value, name: name.value, from: next, state });
        const answer = await fetch(`/api/curves?run=${section.dataset.run}&${String(asked).replaceAll('+', '%20')}`);
        if (answer.status === 200) {
          const curves = await answer.json();
          const svg = new DOMParser().parseFromString(curves.svg, 'image/svg+xml').documentElement;
          drawing.replaceChildren(document.importNode(svg, true));
          offer(seed, curves.seeds);
          offer(name, curves.names);
          next = curves.next;
          pulse.textContent = `${curves.state} · step ${curves.step} · ${curves.lines} lines` +
            (curves.complete ? '' : ', the first of a longer log');
          drawing.dataset.lines = curves.lines;
          if (curves.state !== state) await refresh();
          state = curves.state;
        } else if (answer.status !== 204) {
          pulse.textContent = await answer.text();
        }
        if (state === 'running') pause = 1.5 * second;
      } catch {
        pulse.textContent = 'The server does not answer; is it still running?';
      }
    }
    await new Promise(resolve => { wake = resolve; setTimeout(resolve, pause); });
  }
}

// <title> elements shown at once, at the pointer.
function followHints(drawing) {
  const hint = document.getElementById('hint');
  drawing.addEventListener('pointermove', event => {
    const title = event.target.querySelector?.(':scope > title');
    hint.hidden = !title;
    if (!title) return;
    hint.textContent = title.textContent;
    const right = event.clientX + 14 + hint.offsetWidth > innerWidth;
    hint.style.left = (right ? event.clientX - 14 - hint.offsetWidth : event.clientX + 14) + 'px';
    hint.style.top = event.clientY + 14 + 'px';
  });
  drawing.addEventListener('pointerleave', () => { hint.hidden = true; });
}

const curves = document.getElementById('curves');
if (curves) watchCurves(curves);
if (document.getElementById('filter')) watchList();
