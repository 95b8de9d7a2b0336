import { finetunes, titleOf } from '../finetunes/finetunes';
import { modelChoices } from '../models/models';
import { texts } from '../texts';
import { change, drawnBy, finetuneId } from './draft';

/** Values of the list: a model's name, or a Fine-Tune's id behind this. */
const finetunePrefix = 'finetune:';

function choose(value: string): void {
  if (value.startsWith(finetunePrefix)) change({ finetuneId: value.slice(finetunePrefix.length) });
  else change({ model: value, finetuneId: undefined });
}

export function ModelField() {
  const drawnWith = finetuneId.value;
  const value = drawnWith === undefined ? (drawnBy.value?.name ?? '') : finetunePrefix + drawnWith;
  return (
    <>
      <label for="model">{texts.draw.model}</label>
      <select id="model" value={value} onChange={(event) => choose(event.currentTarget.value)}>
        <optgroup label={texts.draw.modelGroup}>
          {modelChoices.value.map(({ name, served }) => (
            <option key={name} value={name} selected={value === name}>
              {texts.draw.drawnBy(name, served.name)}
            </option>
          ))}
        </optgroup>
        {finetunes.value.length > 0 && (
          <optgroup label={texts.draw.finetuneGroup}>
            {finetunes.value.map((finetune) => (
              <option
                key={finetune.id}
                value={finetunePrefix + finetune.id}
                selected={value === finetunePrefix + finetune.id}
              >
                {titleOf(finetune)}
              </option>
            ))}
          </optgroup>
        )}
      </select>
    </>
  );
}
