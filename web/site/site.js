// Of every page: light or dark, the contents on narrow screens, and search. A classic script, which also runs from a disk.
(() => {
  const byId = id => document.getElementById(id);

  // ---- light or dark, remembered where the interactive page remembers it
  const system = matchMedia('(prefers-color-scheme: dark)'),
    theme = byId('theme');
  const current = () => document.documentElement.dataset.theme ?? (system.matches ? 'dark' : 'light');
  const label = () => (theme.textContent = current() === 'dark' ? '☀ Light' : '☾ Dark');
  theme.addEventListener('click', () => {
    const next = current() === 'dark' ? 'light' : 'dark';
    document.documentElement.dataset.theme = next;
    try {
      localStorage.setItem('normscope-theme', next);
    } catch {
      // Kept for this page only.
    }
    label();
  });
  system.addEventListener('change', label);
  label();

  // ---- contents
  const menu = byId('menu'),
    contents = byId('contents');
  document.documentElement.classList.add('scripted');
  menu.addEventListener('click', () => {
    const open = contents.classList.toggle('open');
    menu.setAttribute('aria-expanded', String(open));
  });
  // In its own scroll box, or the page would move.
  const here = contents.querySelector('[aria-current]');
  if (here && here.offsetTop + here.offsetHeight > contents.clientHeight)
    contents.scrollTop = here.offsetTop - contents.clientHeight / 2;

  // ---- search
  const input = byId('search'),
    found = byId('found'),
    none = byId('found-none'),
    most = 12;
  let loading,
    chosen = -1;
  const load = () =>
    (loading ??= new Promise(resolve => {
      const script = document.createElement('script');
      script.src = 'search.js';
      script.onload = () => {
        for (const entry of window.normscopeSearch)
          entry.lower = [entry.page, entry.heading, entry.text].map(text => text.toLowerCase());
        resolve(window.normscopeSearch);
      };
      document.head.append(script);
    }));

  // Every word must occur; the beginning of a word counts more than its middle, a heading more than the text.
  function scoreOf(entry, words) {
    let score = 0;
    for (const word of words) {
      let best = 0;
      entry.lower.forEach((text, part) => {
        const at = text.indexOf(word);
        if (at < 0) return;
        const begins = at === 0 || !/[\p{L}\p{N}]/u.test(text[at - 1]) || text.includes(` ${word}`);
        const often = part === 2 ? Math.min(4, text.split(word).length - 1) / 2 : 0;
        best = Math.max(best, [6, 10, 1][part] * (begins ? 2 : 1) * (text === word ? 2 : 1) + often);
      });
      if (best === 0) return 0;
      score += best;
    }
    return score * entry.weight;
  }

  // Text with the words marked, as nodes: what is searched for is never markup.
  function marked(text, words) {
    const lower = text.toLowerCase(),
      nodes = [];
    let at = 0;
    while (at < text.length) {
      const next = words
        .map(word => [lower.indexOf(word, at), word.length])
        .filter(([place]) => place >= 0)
        .sort((a, b) => a[0] - b[0] || b[1] - a[1])[0];
      if (!next) break;
      nodes.push(text.slice(at, next[0]));
      const mark = document.createElement('mark');
      mark.textContent = text.slice(next[0], next[0] + next[1]);
      nodes.push(mark);
      at = next[0] + next[1];
    }
    nodes.push(text.slice(at));
    return nodes;
  }
  function excerpt(text, words) {
    const lower = text.toLowerCase(),
      place = Math.min(...words.map(word => lower.indexOf(word)).filter(at => at >= 0), text.length);
    const from = place === text.length ? 0 : Math.max(0, text.lastIndexOf(' ', Math.max(0, place - 40)));
    return (from > 0 ? '… ' : '') + text.slice(from, from + 160).trim() + (from + 160 < text.length ? ' …' : '');
  }

  function close() {
    found.hidden = none.hidden = true;
    input.setAttribute('aria-expanded', 'false');
    input.removeAttribute('aria-activedescendant');
    chosen = -1;
  }
  function choose(index) {
    const entries = [...found.children];
    if (entries.length === 0) return;
    chosen = (index + entries.length) % entries.length;
    entries.forEach((entry, i) => entry.setAttribute('aria-selected', String(i === chosen)));
    entries[chosen].scrollIntoView({ block: 'nearest' });
    input.setAttribute('aria-activedescendant', entries[chosen].id);
  }
  async function look() {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    if (words.length === 0) return close();
    const entries = await load();
    if (words.join(' ') !== input.value.toLowerCase().split(/\s+/).filter(Boolean).join(' ')) return; // typed on meanwhile
    const best = entries
      .map(entry => ({ entry, score: scoreOf(entry, words) }))
      .filter(({ score }) => score > 0)
      .sort((a, b) => b.score - a.score)
      .slice(0, most);
    found.replaceChildren(
      ...best.map(({ entry }, i) => {
        const item = document.createElement('li');
        item.id = `found-${i}`;
        item.setAttribute('role', 'option');
        item.setAttribute('aria-selected', 'false');
        item.dataset.address = entry.address;
        const title = document.createElement('strong'),
          text = document.createElement('span');
        title.append(...marked(entry.heading === entry.page ? entry.page : `${entry.page} › ${entry.heading}`, words));
        text.append(...marked(excerpt(entry.text, words), words));
        item.append(title, text);
        return item;
      }),
    );
    chosen = -1;
    input.removeAttribute('aria-activedescendant');
    found.hidden = best.length === 0;
    none.hidden = best.length > 0;
    none.textContent = best.length > 0 ? '' : `Nothing is found for “${input.value}”.`;
    input.setAttribute('aria-expanded', String(best.length > 0));
  }
  const follow = item => {
    close();
    location.href = item.dataset.address;
  };
  input.addEventListener('focus', load);
  input.addEventListener('input', look);
  input.addEventListener('keydown', event => {
    if (event.key === 'ArrowDown') choose(chosen + 1);
    else if (event.key === 'ArrowUp') choose(chosen - 1);
    else if (event.key === 'Enter' && !found.hidden) follow(found.children[Math.max(0, chosen)]);
    else if (event.key === 'Escape') close();
    else return;
    event.preventDefault();
  });
  found.addEventListener('mousedown', event => event.preventDefault()); // the focus stays
  found.addEventListener('click', event => {
    const item = event.target.closest('li');
    if (item) follow(item);
  });
  input.addEventListener('blur', close);
  document.addEventListener('keydown', event => {
    if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target instanceof Element && event.target.closest('input, textarea, select')) return;
    event.preventDefault();
    input.focus();
  });

  // ---- commands can be taken along, without prompts and without what they print
  if (navigator.clipboard)
    for (const block of document.querySelectorAll('.code[data-language="console"]')) {
      const commands = [...block.querySelectorAll('.command')].map(command => command.textContent);
      if (commands.length === 0) continue;
      const button = document.createElement('button');
      button.type = 'button';
      button.className = 'copy';
      button.textContent = 'Copy';
      button.setAttribute('aria-label', 'Copy the commands');
      button.addEventListener('click', async () => {
        await navigator.clipboard.writeText(commands.join('\n') + '\n');
        button.textContent = 'Copied';
        setTimeout(() => (button.textContent = 'Copy'), 1500);
      });
      block.append(button);
    }
})();
