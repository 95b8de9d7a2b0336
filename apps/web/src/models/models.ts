import { computed } from '@preact/signals';
import type { Choices } from '../ui/fields';
import type { Model } from '../service/client';
import { isReachable } from '../service/reach';
import { client, forThisSession, session, sessionSignal } from '../session/session';

const refreshMs = 5_000;

/** Installed models. */
export const models = sessionSignal<readonly Model[]>(() => []);
export const areModelsLoaded = sessionSignal(() => false);

/** Whether models are installed but no running worker can draw with any. */
export const isWorkerAway = computed(
  () => models.value.length > 0 && models.value.every(({ device }) => device === null),
);

/** A name to draw with. */
export interface ModelChoice {
  name: string;
  /** The model that draws for the name: itself, or a stand-in. */
  served: Model;
}

/** Every name that an installed model draws for. */
export const modelChoices = computed<ModelChoice[]>(() =>
  models.value
    .filter(({ problem, kind }) => problem === null && kind !== 'control' && kind !== 'safety')
    .flatMap((served) => [served.name, ...served.stands_in_for].map((name) => ({ name, served }))),
);

/** ControlNets, which say what drawings follow of a picture. */
export const controlModels = computed(() =>
  models.value.filter(({ problem, kind }) => problem === null && kind === 'control'),
);

/** The name, and which model that is: what draws for it, its family, and a precision that is not the usual one. */
export function choiceText({ name, served }: ModelChoice): string {
  const drawer = name === served.name ? [] : [`drawn by ${served.name}`];
  const precision = served.precision === 'int8' ? ['int8'] : [];
  const facts = [...drawer, served.family_title, ...precision].filter((fact) => fact !== null);
  return facts.length > 0 ? `${name} (${facts.join(', ')})` : name;
}

/** The models that can be trained, and with the reason those that cannot. */
export const trainingChoices = computed<Choices>(() =>
  modelChoices.value.map((choice) => {
    const refusal = choice.served.cannot.training;
    const text = choiceText(choice);
    return refusal === undefined ? [choice.name, text] : [choice.name, `${text}: ${refusal}`, 'disabled'];
  }),
);

/** A model's own scheduler, by the name that the model has for it. */
export const ownScheduler = (name: string | null | undefined): string =>
  name ? `Model’s own (${name.replace(/Scheduler$/, '')})` : 'Model’s own';

export const choiceOf = (name: string | undefined): ModelChoice | undefined =>
  modelChoices.value.find((choice) => choice.name === name);

export const loadModels = (): Promise<void> =>
  forThisSession(client().models.list(), (found) => {
    models.value = found;
    areModelsLoaded.value = true;
  });

/** Rereads when workers come and go. */
export function watchModels(): () => void {
  const timer = setInterval(() => {
    if (session.value && isReachable.value && !document.hidden) loadModels().catch(() => undefined);
  }, refreshMs);
  return () => clearInterval(timer);
}
