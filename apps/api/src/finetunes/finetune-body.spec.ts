import { InvalidError } from '@app/domain';
import { CreateFinetuneDto, CreateGenerationDto } from '@app/domain/http';
import { FinetuneOrGenerationPipe } from './finetune-body';

describe(FinetuneOrGenerationPipe.name, () => {
  const pipe = new FinetuneOrGenerationPipe();

  it('takes a name without a prompt for a Fine-Tune', () => {
    expect(pipe.transform({ name: 'robot' })).toBeInstanceOf(CreateFinetuneDto);
  });

  it('takes a prompt for a text-to-image request', () => {
    expect(pipe.transform({ prompt: 'a robot' })).toBeInstanceOf(CreateGenerationDto);
  });

  it.each([
    ['nothing', {}, 'PromptMissing', ['/prompt']],
    ['what both have', { model: 'shapes', metadata: {} }, 'PromptMissing', ['/prompt']],
    ['a title alone', { title: 'x' }, 'FineTuneNameMissing', ['/name']],
    ['a token alone', { token: 'x' }, 'FineTuneNameMissing', ['/name']],
    ['pictures alone', { images_url: [] }, 'FineTuneNameMissing', ['/name']],
    ['no name and a bad token', { token: 'a b' }, 'FineTuneNameMissing', ['/name', '/token']],
    ['a name that is null', { name: null }, 'PromptMissing', ['/prompt']],
    ['a title and a name that is null', { name: null, title: 'x' }, 'FineTuneNameMissing', ['/name']],
    ['a name and a prompt', { name: 'robot', prompt: 'a robot' }, 'ValidationFailed', ['/name']],
    ['an array', [], 'ValidationFailed', ['']],
    ['no body', undefined, 'ValidationFailed', ['']],
    ['a token of two words', { name: 'robot', token: 'a b' }, 'ValidationFailed', ['/token']],
    [
      'a bad URL',
      { name: 'robot', images_url: ['https://a.example/1', 'ftp://b'] },
      'ValidationFailed',
      ['/images_url/1'],
    ],
    ['a field of the other', { name: 'robot', cfg: 3 }, 'ValidationFailed', ['/cfg']],
  ])('refuses %s', (_, body, code, pointers) => {
    try {
      pipe.transform(body);
    } catch (error) {
      expect(error).toBeInstanceOf(InvalidError);
      expect((error as InvalidError).code).toBe(code);
      expect((error as InvalidError).fields?.map(({ pointer }) => pointer).sort()).toEqual(pointers);
      return;
    }
    throw new Error('It was accepted.');
  });

  it.each([
    [{ name: 'robot', prompt: 'a robot' }, '"/name" is not a known field of a Generation, which a body with "prompt"'],
    [{ prompt: 'a robot', token: 'x' }, '"/token" is not a known field of a Generation, which a body with "prompt"'],
    [{ prompt: 'a robot', colour: 'x' }, '"/colour" is not a known field.'],
    [{}, '"/prompt" is required to draw pictures from it; a body with "name", and without "prompt"'],
  ])('says of %j how to make the other', (body, sentence) => {
    expect(() => pipe.transform(body)).toThrow(sentence);
  });

  it('still counts the problems', () => {
    const body = { name: 'robot', title: 'My robot', prompt: 'a robot' };
    expect(() => pipe.transform(body)).toThrow('register a Fine-Tune (one of 2 problems).');
  });
});
