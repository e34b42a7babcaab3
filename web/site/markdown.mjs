// Markdown to HTML: markdown-it, with anchors as GitHub makes them, tables and code that scroll on narrow screens, and commands
// set off from what they print.
import MarkdownIt from 'markdown-it';

export const escape = text =>
  text.replace(/[&<>"]/g, c => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[c]);

export const anchorOf = heading =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}_\- ]/gu, '')
    .replaceAll(' ', '-');

// A block of code as wide as it is, which keys can scroll.
export function code(lines, language, label) {
  return `<div class="code" data-language="${escape(language)}"><pre tabindex="0" aria-label="${escape(label)}"><code>${lines}</code></pre></div>\n`;
}

// "$ " begins a command, "> " goes on with it; the rest is what is printed.
function console_(text) {
  let output = false;
  return text
    .replace(/\n$/, '')
    .split('\n')
    .map(line => {
      if (line.startsWith('$ ') || (line.startsWith('> ') && !output)) {
        output = false;
        return `<span class="prompt" aria-hidden="true">${escape(line.slice(0, 2))}</span><span class="command">${escape(line.slice(2))}</span>`;
      }
      output = true;
      return `<span class="printed">${escape(line)}</span>`;
    })
    .join('\n');
}

const codeLabels = {
  console: 'Commands and what they print',
  python: 'Python',
  cpp: 'C++',
  cmake: 'CMake',
  json: 'JSON',
  text: 'Text',
};

// Returns { html, title, headings: [{ level, text, anchor }] }. rewrite: from the target of a link, or of a picture, to where it
// is in the site. sizeOf: width and height of a picture, if they are known.
export function render(source, rewrite, sizeOf = () => undefined) {
  const md = new MarkdownIt({ html: false, linkify: false, typographer: false });
  const headings = [],
    taken = new Map();
  const plain = token =>
    token.children
      .filter(each => each.type === 'text' || each.type === 'code_inline')
      .map(each => each.content)
      .join('');

  md.renderer.rules.heading_open = (tokens, i) => {
    const text = plain(tokens[i + 1]),
      level = Number(tokens[i].tag[1]),
      base = anchorOf(text),
      before = taken.get(base) ?? 0;
    taken.set(base, before + 1);
    const anchor = before === 0 ? base : `${base}-${before}`;
    headings.push({ level, text, anchor });
    return `<${tokens[i].tag} id="${escape(anchor)}">`;
  };
  md.renderer.rules.heading_close = (tokens, i) => {
    const { level, text, anchor } = headings.at(-1);
    const link =
      level > 1 ? ` <a class="anchor" href="#${escape(anchor)}" aria-label="Link to: ${escape(text)}">#</a>` : '';
    return `${link}</${tokens[i].tag}>\n`;
  };
  let tables = 0;
  md.renderer.rules.table_open = () =>
    `<div class="table-room" tabindex="0" role="region" aria-label="Table ${++tables}"><table>\n`;
  md.renderer.rules.table_close = () => '</table></div>\n';
  md.renderer.rules.fence = (tokens, i) => {
    const language = tokens[i].info.trim() || 'text';
    const body = language === 'console' ? console_(tokens[i].content) : escape(tokens[i].content.replace(/\n$/, ''));
    return code(body, language, codeLabels[language] ?? language);
  };
  md.renderer.rules.code_block = (tokens, i) => code(escape(tokens[i].content.replace(/\n$/, '')), 'text', 'Text');
  md.renderer.rules.link_open = (tokens, i, options, env, self) => {
    tokens[i].attrSet('href', rewrite(tokens[i].attrGet('href')));
    return self.renderToken(tokens, i, options);
  };
  // With its size, or what stands below would move when it comes.
  md.renderer.rules.image = (tokens, i) => {
    const source = tokens[i].attrGet('src'),
      size = sizeOf(source);
    return `<img src="${escape(rewrite(source))}" alt="${escape(tokens[i].content)}"${size ? ` width="${size[0]}" height="${size[1]}"` : ''} loading="lazy">`;
  };
  // k_i, W_V, d_QK: a letter with an index, in words, not in code.
  md.renderer.rules.text = (tokens, i) =>
    escape(tokens[i].content).replace(
      /(?<![\p{L}\p{N}_])(\p{L})_([\p{L}\p{N}]{1,2})(?![\p{L}\p{N}_])/gu,
      '$1<sub>$2</sub>',
    );

  // Comments on lines of their own mark what tests write; they are not for readers.
  const html = md.render(source.replace(/^<!--.*-->\n/gm, ''));
  return { html, title: headings.find(({ level }) => level === 1)?.text ?? headings[0]?.text ?? '', headings };
}
