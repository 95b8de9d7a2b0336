import type { Collection } from '../service/client';
import { texts } from '../texts';
import { Pending, useLoad } from '../ui/pending';
import { route } from '../ui/route';
import { CollectionView } from './collection-view';
import { areCollectionsLoaded, collectionOf, loadCollections, ownCollections, publicCollections } from './collections';
import { NewCollection } from './new-collection';
import { Thumbnail } from './thumbnail';

export function CollectionsPage() {
  const load = useLoad(loadCollections);
  const [, id] = route.value;
  const open = id === undefined ? undefined : collectionOf(id);
  if (open) return <CollectionView key={open.id} collection={open} />;
  return (
    <div class="resource-page">
      <header>
        <h1>{texts.collections.title}</h1>
        <p class="lead">{texts.collections.lead}</p>
      </header>
      <NewCollection />
      {(load.error !== undefined || !areCollectionsLoaded.value) && (
        <Pending of={load} text={texts.collections.loading} />
      )}
      {areCollectionsLoaded.value && <Lists />}
    </div>
  );
}

function Lists() {
  return (
    <>
      <section aria-labelledby="own-collections">
        <h2 id="own-collections">{texts.collections.own}</h2>
        {ownCollections.value.length === 0 ? (
          <p class="empty">{texts.collections.empty}</p>
        ) : (
          <Covers collections={ownCollections.value} />
        )}
      </section>
      <section aria-labelledby="public-collections">
        <h2 id="public-collections">{texts.collections.public}</h2>
        <Covers collections={publicCollections.value} />
      </section>
    </>
  );
}

function Covers({ collections }: { collections: readonly Collection[] }) {
  return (
    <ul class="covers">
      {collections.map(({ id, name, thumbnail }) => (
        <li key={id}>
          <a class="cover" href={`#/collections/${id}`}>
            <Thumbnail url={thumbnail} />
            <span>{name}</span>
          </a>
        </li>
      ))}
    </ul>
  );
}
