/** The factor by which tests wait longer on engines that are slow and shared with other tests. */
export const PATIENCE = process.env['SVC_TEST_ENGINES'] === 'real' ? 3 : 1

/** The factor by which limits of tests exceed what an idle machine needs. Only tests that fail take longer by it. */
export const SLACK = 3
