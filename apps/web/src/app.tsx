import { useEffect } from 'preact/hooks';
import { CollectionsPage } from './collections/collections-page';
import { keepFresh, loadError, loadMore, refresh, restart } from './drawings/feed';
import { followOpenDrawings } from './drawings/follower';
import { DrawPage } from './draw/draw-page';
import { FinetunesPage } from './finetunes/finetunes-page';
import { Compare } from './gallery/compare';
import { Viewer } from './gallery/viewer';
import { loadModels, watchModels } from './models/models';
import { DropTarget } from './png/drop-target';
import { OperatorPage } from './operator/operator-page';
import { isReachable } from './service/reach';
import { loadCurrentKey } from './session/current-key';
import { session } from './session/session';
import { SignIn } from './session/sign-in';
import { texts } from './texts';
import { Banner } from './ui/banner';
import { Header } from './ui/header';
import { attempt, Notices } from './ui/notices';
import { route } from './ui/route';

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
        {texts.nav.skip}
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

/** After the service was away, reads what happened meanwhile. */
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
