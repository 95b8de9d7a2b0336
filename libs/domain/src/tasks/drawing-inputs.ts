/** A Fine-Tune that a Generation is drawn with. */
export interface UsedFinetune {
  id: string;
  /** By how much its weights change the model. */
  scale: number;
}

/** What a drawing is made from besides its texts, with every default resolved. */
export interface DrawingInputs {
  finetunes?: readonly UsedFinetune[];
}
