// build.mjs DIRECTORY: the documentation as a site that any static server serves and a browser opens from disk. Pages are README,
// docs/*.md and the project's own pages; the reference is made of what options, results and headers say of themselves. A link
// that leads nowhere is an error.
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { headerPage } from './headers.mjs';
import { escape, render } from './markdown.mjs';
import { fieldsOf, optionTables } from './reference.mjs';

const here = path.dirname(fileURLToPath(import.meta.url)),
  root = path.resolve(here, '../..');
const read = file => readFileSync(path.join(root, file), 'utf8');

// Where a page stands in the contents; what is in docs/ and not named here comes under “More”.
const contents = [
  ['Start', ['README.md', 'docs/guide.md', 'docs/python.md']],
  [
    'By question',
    [
      'docs/ask-healthy-keys.md',
      'docs/ask-which-norm.md',
      'docs/ask-mask-collapse.md',
      'docs/ask-never-said.md',
      'docs/ask-paper-claim.md',
    ],
  ],
  [
    'By command',
    ['docs/keys.md', 'docs/heatmap.md', 'docs/models.md', 'docs/depth.md', 'docs/training.md', 'docs/audit.md'],
  ],
  [
    'Behind it',
    ['docs/theory.md', 'docs/performance.md', 'docs/cluster.md', 'docs/reproduction.md', 'docs/sources.md'],
  ],
  ['Reference', ['reference', 'docs/keys-json.md', 'docs/train-json.md', 'docs/collapse-json.md', 'api']],
  ['More', []],
  ['Project', ['CHANGELOG.md', 'CONTRIBUTING.md', 'HACKING.md']],
];
const shortTitles = new Map([
  ['README.md', 'Normscope'],
  ['docs/guide.md', 'Guide: what commands share'],
  ['docs/python.md', 'Python'],
  ['docs/keys-json.md', 'JSON: keys, heatmap'],
  ['docs/train-json.md', 'JSON: train, paper'],
  ['docs/collapse-json.md', 'JSON: mask, collapse, equilibria'],
  ['HACKING.md', 'Working on it'],
  ['CHANGELOG.md', 'Changes'],
]);

// Of a PNG or an SVG of ours.
function sizeOf(picture) {
  const bytes = readFileSync(picture);
  if (picture.endsWith('.png')) return [bytes.readUInt32BE(16), bytes.readUInt32BE(20)];
  const found = /^<svg [^>]*?width="([\d.]+)" height="([\d.]+)"/.exec(bytes.toString('utf8', 0, 400));
  return found ? [found[1], found[2]] : undefined;
}

const addressOf = file =>
  file === 'README.md' ? 'index.html' : path.basename(file, '.md').toLowerCase().replaceAll(' ', '-') + '.html';

class Site {
  pages = []; // { file, address, title, group, html, headings, links }
  copied = new Map(); // file of the repository → its place in the site

  add(page) {
    this.pages.push(page);
    return page;
  }

  // From a link in `file` to one in the site.
  place(file, target) {
    if (/^[a-z]+:/.test(target)) return target;
    if (target.startsWith('#')) return target;
    const [name, anchor] = target.split('#');
    const there = path.normalize(path.join(path.dirname(file), name));
    if (this.sources.has(there)) return addressOf(there) + (anchor ? `#${anchor}` : '');
    const whole = path.join(root, there);
    if (there.startsWith('..') || !existsSync(whole) || !statSync(whole).isFile())
      throw new Error(`${file} links to '${target}', which is neither a page nor a file.`);
    const shown = /\.(svg|png|json|html)$/.test(there) ? there : `${there}.txt`;
    this.copied.set(there, path.posix.join('files', shown));
    return this.copied.get(there);
  }
}

function markdownPage(site, file, group) {
  const { html, title, headings } = render(
    read(file),
    target => site.place(file, target),
    target => sizeOf(path.join(root, path.dirname(file), target)),
  );
  return site.add({ file, address: addressOf(file), title: shortTitles.get(file) ?? title, group, html, headings });
}

function referencePages(site) {
  const tables = optionTables([...site.sources].filter(file => file.startsWith('docs/')).map(read));
  const commands = [...tables.keys()].filter(command => command !== 'every command');
  const schemas = new Set(readdirSync(path.join(root, 'docs')).filter(file => file.endsWith('.schema.json')));
  const list = [];
  for (const command of commands) {
    const schemaFile = `${command.replaceAll(' ', '-')}.schema.json`,
      known = schemas.has(schemaFile);
    const options = render(`# normscope ${command}\n\n## Options\n\n${tables.get(command)}\n`, target => target);
    let { html, headings } = options,
      about = '';
    if (known) {
      const schema = JSON.parse(read(`docs/${schemaFile}`));
      about = schema.description ?? '';
      const result = fieldsOf(schema, site.place('docs/guide.md', schemaFile));
      html += result.html;
      headings = [...headings, ...result.headings];
    }
    html = html.replace(
      '<h2 id="options">',
      `<p>${escape(about)} <a href="${addressOf(site.pageOfTable(command))}#${site.anchorOfTable(command)}">Explained with examples</a>; the options of
every command are in the <a href="guide.html#options-of-every-command">guide</a>.</p>\n<h2 id="options">`,
    );
    const address = `reference-${command.replaceAll(' ', '-')}.html`;
    site.add({ address, title: `normscope ${command}`, group: '', html, headings, parent: 'reference.html' });
    list.push(
      `<tr><td><a href="${address}"><code>normscope ${escape(command)}</code></a></td><td>${escape(about)}</td></tr>`,
    );
  }
  const html = `<h1 id="commands">Commands</h1>
<p>Options with ranges and defaults, and the fields of results, as the program says of itself.</p>
<div class="table-room" tabindex="0" role="region" aria-label="Commands"><table>
<thead><tr><th>command</th><th>what its result is</th></tr></thead><tbody>
${list.join('\n')}
</tbody></table></div>
<p><code>tour</code>, <code>doctor</code>, <code>manual</code>, <code>completion</code>, <code>data list</code> and <code>data path</code>
have few options beside those of <a href="guide.html#options-of-every-command">every command</a>; <a href="guide.html#first-steps">the guide</a> tells
what they do, and <code>--help</code> of each.</p>\n`;
  return {
    address: 'reference.html',
    title: 'Commands',
    html,
    headings: [{ level: 1, text: 'Commands', anchor: 'commands' }],
  };
}

function apiPages(site) {
  const headers = ['normscope.h', ...readdirSync(path.join(root, 'include/normscope')).map(file => `normscope/${file}`)]
    .filter(file => file.endsWith('.h'))
    .sort();
  const list = [];
  for (const file of headers) {
    const page = headerPage(file, read(`include/${file}`));
    const address = `api-${path.basename(file, '.h')}${file.includes('/') ? '' : '-c'}.html`;
    site.add({ address, group: '', parent: 'api.html', ...page });
    list.push(`<tr><td><a href="${address}"><code>${escape(file)}</code></a></td><td>${escape(page.lead)}</td></tr>`);
  }
  const html = `<h1 id="c-and-c">C++ and C</h1>
<p>One header per concept; what is not in <code>include/</code> may change. Results do not depend on the number of threads, and the library never
prints, exits or aborts on input: it throws <code>InputError</code> or <code>Error</code>.</p>
<div class="table-room" tabindex="0" role="region" aria-label="Headers"><table>
<thead><tr><th>header</th><th>what it is about</th></tr></thead><tbody>
${list.join('\n')}
</tbody></table></div>\n`;
  return {
    address: 'api.html',
    title: 'C++ and C',
    html,
    headings: [{ level: 1, text: 'C++ and C', anchor: 'c-and-c' }],
  };
}

// ---- the frame around a page

function navigation(site, current) {
  return contents
    .map(([group]) => {
      const entries = site.pages.filter(page => page.group === group);
      if (entries.length === 0) return '';
      const items = entries
        .map(({ address, title }) => {
          const here = address === current.address || address === current.parent;
          return `<li><a href="${address}"${here ? ' aria-current="page"' : ''}>${escape(title)}</a></li>`;
        })
        .join('');
      return `<h2>${escape(group)}</h2><ul>${items}</ul>`;
    })
    .join('\n');
}

function onThisPage(headings) {
  const entries = headings.filter(({ level }) => level === 2 || level === 3);
  if (entries.length < 2) return '';
  return `<nav class="on-this-page" aria-label="On this page"><p>On this page</p><ul>${entries
    .map(
      ({ level, text, anchor }) => `<li class="level-${level}"><a href="#${escape(anchor)}">${escape(text)}</a></li>`,
    )
    .join('')}</ul></nav>`;
}

const frame = (site, page) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escape(page.title === 'Normscope' ? 'Normscope' : `${page.title} · Normscope`)}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="site.css">
<script src="theme.js"></script>
<script defer src="site.js"></script>
</head>
<body>
<a class="skip" href="#content">Skip to the text</a>
<header class="top">
<a class="brand" href="index.html">Normscope</a>
<div class="search" role="search">
<input id="search" type="search" placeholder="Search" autocomplete="off" spellcheck="false" aria-label="Search the documentation" role="combobox" aria-expanded="false" aria-controls="found" aria-autocomplete="list">
<kbd aria-hidden="true">/</kbd>
<ul id="found" role="listbox" aria-label="Found" hidden></ul>
<p id="found-none" class="none" role="status" hidden></p>
</div>
<button id="menu" type="button" aria-expanded="false" aria-controls="contents">Contents</button>
<button id="theme" type="button" aria-label="Switch between light and dark"></button>
</header>
<div class="frame">
<nav id="contents" aria-label="Contents">
${navigation(site, page)}
</nav>
<main id="content" tabindex="-1">
${page.html}</main>
${onThisPage(page.headings)}
</div>
</body>
</html>
`;

// ---- search: one entry per section

const plainText = html =>
  html
    .replace(/<a class="anchor"[^>]*>#<\/a>/g, '')
    .replace(/<\/(p|li|td|th|tr|h\d|pre|div)>|<br>/g, ' ')
    .replace(/<[^>]+>/g, '')
    .replace(/&lt;/g, '<')
    .replace(/&gt;/g, '>')
    .replace(/&quot;/g, '"')
    .replace(/&amp;/g, '&')
    .replace(/\s+/g, ' ')
    .trim();

function searchEntries(page) {
  // What explains comes before what lists.
  const weight = page.parent === 'api.html' ? 0.3 : page.group === 'Project' ? 0.4 : page.parent ? 0.7 : 1;
  const marks = [...page.html.matchAll(/<h([1-3]) id="([^"]*)">([\s\S]*?)<\/h\1>/g)];
  return marks.map((mark, i) => {
    const text = page.html.slice(mark.index + mark[0].length, marks[i + 1]?.index ?? page.html.length);
    return {
      page: page.title,
      heading: plainText(mark[3]),
      address: page.address + (mark[1] === '1' ? '' : `#${mark[2]}`),
      text: plainText(text),
      weight,
    };
  });
}

// ---- links within the site

function requireLinks(site) {
  const anchors = new Map(
    site.pages.map(page => [page.address, new Set([...page.html.matchAll(/ id="([^"]*)"/g)].map(match => match[1]))]),
  );
  const wrong = [];
  for (const page of site.pages)
    for (const [, href] of page.html.matchAll(/ href="([^"]*)"/g)) {
      if (/^[a-z]+:/.test(href) || href.startsWith('files/')) continue;
      const [address, anchor] = href.split('#');
      const there = anchors.get(address || page.address);
      if (!there) wrong.push(`${page.file ?? page.address}: '${href}' is no page`);
      else if (anchor && !there.has(decodeURIComponent(anchor)))
        wrong.push(`${page.file ?? page.address}: '${href}' has no such heading`);
    }
  if (wrong.length > 0) throw new Error(`Links that lead nowhere:\n${wrong.join('\n')}`);
}

export function build(target) {
  const site = new Site();
  const named = new Set(contents.flatMap(([, files]) => files));
  const inDocs = readdirSync(path.join(root, 'docs'))
    .filter(file => file.endsWith('.md'))
    .map(file => `docs/${file}`)
    .sort();
  const more = inDocs.filter(file => !named.has(file));
  site.sources = new Set([...named, ...more].filter(file => file.endsWith('.md') && existsSync(path.join(root, file))));
  const holder = command => inDocs.find(file => read(file).includes(`<!-- options of ${command} -->`));
  site.pageOfTable = holder;
  site.anchorOfTable = command => {
    const before = read(holder(command)).split(`<!-- options of ${command} -->`)[0];
    const { headings } = render(before, target => target);
    return headings.findLast(({ level }) => level <= 2).anchor;
  };

  for (const [group, files] of contents)
    for (const file of group === 'More' ? more : files) {
      if (file === 'reference') site.add({ ...referencePages(site), group });
      else if (file === 'api') site.add({ ...apiPages(site), group });
      else if (site.sources.has(file)) markdownPage(site, file, group);
    }
  requireLinks(site);

  rmSync(target, { recursive: true, force: true });
  mkdirSync(target, { recursive: true });
  for (const page of site.pages) writeFileSync(path.join(target, page.address), frame(site, page));
  for (const [file, place] of site.copied) {
    mkdirSync(path.dirname(path.join(target, place)), { recursive: true });
    cpSync(path.join(root, file), path.join(target, place));
  }
  // The colours are those of the interactive page.
  const colours = read('web/src/style.css').split('\n* {')[0];
  writeFileSync(path.join(target, 'site.css'), colours + '\n' + readFileSync(path.join(here, 'site.css'), 'utf8'));
  cpSync(path.join(root, 'web/public/theme.js'), path.join(target, 'theme.js'));
  cpSync(path.join(here, 'site.js'), path.join(target, 'site.js'));
  // A script rather than data: pages from a disk may not read other files.
  const entries = site.pages.flatMap(searchEntries);
  writeFileSync(path.join(target, 'search.js'), `window.normscopeSearch = ${JSON.stringify(entries)};\n`);
  return { pages: site.pages.map(({ address, title }) => ({ address, title })), entries: entries.length };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const target = path.resolve(process.argv[2] ?? path.join(root, 'build/docs'));
  try {
    build(target);
  } catch (error) {
    console.error(error.message);
    process.exit(1);
  }
}
