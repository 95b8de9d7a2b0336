// Swagger UI has a page of its own; this puts the header of the other pages on top of it.
const link = (href, text, isBrand) => {
  const made = globalThis.document.createElement('a');
  made.href = href;
  made.textContent = text;
  if (isBrand) made.className = 'brand';
  return made;
};
const navigation = globalThis.document.createElement('nav');
navigation.setAttribute('aria-label', 'Service');
navigation.append(link('../', 'Playground'), link('../docs', 'Docs'));
const header = globalThis.document.createElement('header');
header.className = 'header';
header.append(link('../', 'Darkroom', true), navigation);
globalThis.document.body.prepend(header);
