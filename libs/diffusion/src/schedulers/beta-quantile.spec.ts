import { betaQuantile } from './beta-quantile';

describe(betaQuantile, () => {
  // scipy.stats.beta.ppf(probability, 0.6, 0.6)
  it.each([
    [0, 0],
    [0.001, 1.855873851745199e-5],
    [0.1, 0.03958440558878085],
    [0.3, 0.23401700387523572],
    [0.5, 0.5],
    [0.75, 0.824319621347305],
    [0.9, 0.9604155944112192],
    [0.999, 0.9999814412614826],
    [1, 1],
  ])('of %d is %d', (probability, expected) => {
    expect(Math.abs(betaQuantile(probability) - expected)).toBeLessThan(1e-13);
  });
});
