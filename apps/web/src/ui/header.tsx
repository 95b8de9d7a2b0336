import { serviceUrl } from '../service/address';
import { isOperator } from '../session/current-key';
import { isKept, signOut } from '../session/session';
import { texts } from '../texts';
import { route } from './route';

const pages = [
  { path: '', text: texts.nav.draw },
  { path: 'fine-tunes', text: texts.nav.finetunes },
  { path: 'collections', text: texts.nav.collections },
];

const operate = { path: 'operate', text: texts.nav.operate };

export function Header() {
  const [current = ''] = route.value;
  const shown = isOperator.value ? [...pages, operate] : pages;
  return (
    <header class="header">
      <a class="brand" href="#/">
        <span class="lamp" aria-hidden="true" />
        {texts.name}
      </a>
      <nav aria-label={texts.nav.label}>
        {shown.map(({ path, text }) => (
          <a key={path} href={`#/${path}`} aria-current={current === path ? 'page' : undefined}>
            {text}
          </a>
        ))}
        <a href={`${serviceUrl}/docs`}>{texts.nav.docs}</a>
      </nav>
      <button
        type="button"
        class="button is-quiet sign-out"
        title={isKept.value ? texts.account.kept : texts.account.memory}
        onClick={() => signOut()}
      >
        {texts.account.signOut}
      </button>
    </header>
  );
}
