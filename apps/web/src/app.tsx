import { Button } from './ui/buttons';
import { useEffect } from 'preact/hooks';
import { CollectionsPage } from './collections/collections-page';
import { DrawPage } from './draw/draw-page';
import { keepFresh, loadError, loadMore, refresh, restart } from './drawings/feed';
import { followOpenDrawings } from './drawings/follower';
import { FinetunesPage } from './finetunes/finetunes-page';
import { Compare } from './gallery/compare';
import { Viewer } from './gallery/viewer';
import { isWorkerAway, loadModels, watchModels } from './models/models';
import { OperatorPage } from './operator/operator-page';
import { DropTarget } from './png/drop-target';
import { isReachable, serviceUrl } from './service/reach';
import { isKept, isOperator, loadCurrentKey, session, signOut } from './session/session';
import { SignIn } from './session/sign-in';
import { attempt, Notices } from './ui/notices';
import { route } from './ui/route';
import { ThemeSwitch } from './ui/theme-switch';

/** The page: a form to sign in, or everything else. */
export function App() {
  return (
    <>
      <Banner />
      {session.value ? <SignedIn key={session.value.key} /> : <SignIn />}
      <Notices />
    </>
  );
}

function SignedIn() {
  useEffect(() => {
    void attempt(loadModels);
    void attempt(loadCurrentKey);
    void restart();
    const stops = [followOpenDrawings(), keepFresh(), watchModels(), catchUpWhenBack()];
    return () => {
      for (const stop of stops) stop();
    };
  }, []);
  const [name] = route.value;
  return (
    <>
      <a class="skip" href="#content" onClick={skip}>
        Skip to content
      </a>
      <Header />
      <main id="content" tabIndex={-1}>
        <Page name={name} />
      </main>
      <Viewer />
      <Compare />
      <DropTarget />
    </>
  );
}

function Page({ name }: { name: string | undefined }) {
  if (name === 'fine-tunes') return <FinetunesPage />;
  if (name === 'collections') return <CollectionsPage />;
  if (name === 'operate') return <OperatorPage />;
  return <DrawPage />;
}

/** The address behind `#` is the page's route, so the link cannot set it. */
function skip(event: Event): void {
  event.preventDefault();
  document.getElementById('content')?.focus();
}

/** Reads what happened while the service was away. */
function catchUpWhenBack(): () => void {
  let wasReachable = true;
  return isReachable.subscribe((isThere) => {
    const isBack = isThere && !wasReachable;
    wasReachable = isThere;
    if (!isBack) return;
    void Promise.all([loadModels(), loadCurrentKey(), refresh(true)]).catch(() => undefined);
    if (loadError.value !== undefined) void loadMore();
  });
}

const pages = [
  { path: '', text: 'Draw' },
  { path: 'fine-tunes', text: 'Fine-Tunes' },
  { path: 'collections', text: 'Collections' },
];

const operate = { path: 'operate', text: 'Operate' };

function Header() {
  const [current = ''] = route.value;
  const shown = isOperator.value ? [...pages, operate] : pages;
  return (
    <header class="header">
      <a class="brand" href="#/">
        <span class="lamp" aria-hidden="true" />
        Darkroom
      </a>
      <nav aria-label="Pages">
        {shown.map(({ path, text }) => (
          <a key={path} href={`#/${path}`} aria-current={current === path ? 'page' : undefined}>
            {text}
          </a>
        ))}
        <a href={`${serviceUrl}/docs`} target="_blank" rel="noopener" title="Opens in a tab of its own">
          API
        </a>
      </nav>
      <ThemeSwitch />
      <Button
        kind="is-quiet"
        title={
          isKept.value
            ? 'The key is kept until this tab is closed.'
            : 'The key is in memory only, and gone after a reload.'
        }
        onClick={() => signOut()}
      >
        Sign out
      </Button>
    </header>
  );
}

/** The region is always there, so that screen readers notice trouble of the service. */
function Banner() {
  const text = !isReachable.value
    ? 'The service does not answer. Trying again … What you asked for is safe there.'
    : session.value && isWorkerAway.value
      ? 'No worker is running at the moment. What you ask for waits until one is back.'
      : '';
  return (
    <div class="banner" role="status">
      {text && (
        <p>
          <span class="pulse" aria-hidden="true" /> {text}
        </p>
      )}
    </div>
  );
}
