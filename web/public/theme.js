// Before the first paint, or a chosen theme would flash the other one. A file of its own: a strict content policy allows
// no script inside the page.
try {
  const theme = localStorage.getItem('normscope-theme');
  if (theme) document.documentElement.dataset.theme = theme;
} catch {}
