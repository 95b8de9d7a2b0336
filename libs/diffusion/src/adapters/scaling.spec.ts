import { readScaling } from './scaling';
import { WeightsError } from './weights-error';

const path = 'down_blocks.0.attentions.0.proj_in';
const told = (metadata: Record<string, string>, at = path) =>
  readScaling(new Map(Object.entries(metadata)))('unet', [at, `lora_unet_${at.replaceAll('.', '_')}`]);
const ofDiffusers = (config: object) => told({ lora_adapter_metadata: JSON.stringify(config) });
const plain = { isRankStabilised: false };

describe(readScaling.name, () => {
  it.each<[string, Record<string, string>]>([
    [
      "diffusers' metadata",
      { lora_adapter_metadata: '{"unet.r": 4, "unet.lora_alpha": 8, "text_encoder.lora_alpha": 2}' },
    ],
    ["peft's configuration", { adapter_config: '{"r": 4, "lora_alpha": 8}' }],
    ['a part in another object', { lora_adapter_metadata: '{"unet": {"r": 4, "lora_alpha": 8}}' }],
    ["the metadata's own keys", { r: '4', lora_alpha: '8', peft_version: '0.1.2' }],
    ["a LoHa's configuration", { adapter_config: '{"peft_type": "LOHA", "r": 4, "alpha": 8}' }],
  ])('reads alpha and rank from %s', (_, metadata) => expect(told(metadata)).toEqual({ alpha: 8, rank: 4, ...plain }));

  it('knows nothing where nothing is said', () => {
    expect(told({ ss_network_alpha: '8' })).toBeUndefined();
    expect(ofDiffusers({ 'text_encoder.lora_alpha': 2 })).toBeUndefined();
    expect(told({ lora_adapter_metadata: 'null' })).toBeUndefined();
  });

  it.each([
    [{ [path]: 2 }, 2],
    [{ proj_in: 2 }, 2],
    [{ lora_unet_down_blocks_0_attentions_0_proj_in: 2 }, 2],
    [{ 'attentions\\.0\\.proj_in': 2 }, 2],
    [{ [`^${path}$`]: 2 }, 2],
    [{ '^proj_in': 2 }, 8],
    [{ in: 2, 'down_blocks.1.attentions.0.proj_in': 2 }, 8],
  ])('has an alpha for a layer by the pattern %j', (patterns, alpha) =>
    expect(ofDiffusers({ 'unet.lora_alpha': 8, 'unet.alpha_pattern': patterns })?.alpha).toBe(alpha),
  );

  it('knows rank-stabilised scaling', () =>
    expect(ofDiffusers({ 'unet.lora_alpha': 8, 'unet.use_rslora': true })?.isRankStabilised).toBe(true));

  it.each<[string, Record<string, string>, RegExp]>([
    ['that is no JSON', { lora_adapter_metadata: '{' }, /not JSON/],
    ['longer than any', { adapter_config: `{${' '.repeat(300_000)}}` }, /longer than/],
    ['with an alpha that no number can hold', { adapter_config: '{"lora_alpha": 1e400}' }, /not a number/],
    ['with a list for an alpha', { adapter_config: '{"lora_alpha": [1]}' }, /not a number/],
    ['with a regular expression', { adapter_config: '{"alpha_pattern": {"(a+)+": 1}}' }, /not a layer's path/],
  ])('refuses metadata %s', (_, metadata, sentence) => {
    const read = () => told(metadata);
    expect(read).toThrow(WeightsError);
    expect(read).toThrow(sentence);
  });
});
