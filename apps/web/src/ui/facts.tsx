import { texts } from '../texts';

export interface Fact {
  name: string;
  value: string;
  /** Whether what it is compared with has another value. */
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
            {isOther && <span class="visually-hidden"> ({texts.compare.differs})</span>}
          </dd>
        </div>
      ))}
    </dl>
  );
}
