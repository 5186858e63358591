/** The factor by which tests wait longer on engines that are slow and shared with other tests. */
export const PATIENCE = process.env['SVC_TEST_ENGINES'] === 'real' ? 3 : 1
