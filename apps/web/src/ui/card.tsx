import type { ComponentChildren } from 'preact';

interface PartProps {
  /** Of its heading. */
  id: string;
  title: string;
  beside?: ComponentChildren;
  children: ComponentChildren;
}

/** A part of a page with its heading. */
export function Part({ id, title, beside, children }: PartProps) {
  const heading = <h2 id={id}>{title}</h2>;
  return (
    <section aria-labelledby={id}>
      {beside ? (
        <div class="part-head">
          {heading}
          {beside}
        </div>
      ) : (
        heading
      )}
      {children}
    </section>
  );
}

interface CardProps {
  title: ComponentChildren;
  status: ComponentChildren;
  children: ComponentChildren;
}

/** One of a list of things with a few facts and actions each. */
export function Card({ title, status, children }: CardProps) {
  return (
    <li class="card panel">
      <div class="card-head">
        {title}
        {status}
      </div>
      {children}
    </li>
  );
}

/** @param kind its class */
export function StatusBadge({ kind, text }: { kind: string; text: string }) {
  return <span class={`status is-${kind}`}>{text}</span>;
}

export interface Fact {
  name: string;
  value: string;
  /** Whether it differs from what it is compared with. */
  isOther?: boolean;
}

/** A list of names and values. */
export function Facts({ facts }: { facts: readonly Fact[] }) {
  return (
    <dl class="facts">
      {facts.map(({ name, value, isOther = false }) => (
        <div key={name} class={isOther ? 'differs' : ''}>
          <dt>{name}</dt>
          <dd>
            {value}
            {isOther && <span class="visually-hidden"> (differs)</span>}
          </dd>
        </div>
      ))}
    </dl>
  );
}
