import type { components, operations } from './schema.ts';

type Schemas = components['schemas'];

export type Generation = Schemas['Generation'];
export type Drawing = Schemas['Drawing'];
export type Finetune = Schemas['Finetune'];
export type Prompt = Schemas['Prompt'];
export type TerminatedPrompt = Schemas['TerminatedPrompt'];
export type CreatedPrompt = Schemas['CreatedPrompt'];
export type PartialPrompt = Schemas['PartialPrompt'];
export type Collection = Schemas['Collection'];
export type Style = Schemas['Style'];
export type Model = Schemas['Model'];
export type Usage = Schemas['Usage'];
export type WebhookDelivery = Schemas['WebhookDelivery'];
export type Upload = Schemas['Upload'];
export type Verification = Schemas['Verification'];
export type Deleted = Schemas['Deleted'];
export type PromptStatus = Schemas['PromptStatus'];
export type Key = Schemas['Key'];
export type CreatedKey = Schemas['CreatedKey'];
export type RotatedKey = Schemas['RotatedKey'];
export type RotatedWebhookSecret = Schemas['RotatedWebhookSecret'];
export type NewKey = Schemas['CreateKey'];
export type KeyChange = Schemas['UpdateKey'];
export type Worker = Schemas['Worker'];
export type Queue = Schemas['Queue'];
export type Storage = Schemas['Storage'];
export type Activity = Schemas['Activity'];
export type Failure = Schemas['Failure'];
export type KeyDelivery = Schemas['KeyDelivery'];
export type KeyRotation = Schemas['RotateKey'];
export type FinetuneChange = Schemas['UpdateFinetune'];
export type Problem = Schemas['Problem'];
export type NewGeneration = Schemas['CreateGeneration'];
export type NewFinetune = Schemas['CreateFinetune'];
export type NewPrompt = Schemas['CreatePrompt'];
export type NewCollection = Schemas['CreateCollection'];
export type NewStyle = Schemas['CreateStyle'];
export type StyleToApply = Schemas['ApplyStyle'];

/** The query parameters of an operation. */
export type QueryOf<Name extends keyof operations> = NonNullable<operations[Name]['parameters']['query']>;
