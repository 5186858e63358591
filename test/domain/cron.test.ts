import * as assert from 'uvu/assert'
import { ticksOf } from '../../src/domain/cron.ts'
import { randomOf, SEED } from '../support/randomOf.ts'
import { suite } from '../support/suite.ts'

/** The first ticks after an instant, ISO 8601 without seconds. */
const ticks = (cron: string, timezone: string, after: string, count: number): string[] => {
  const { after: next } = ticksOf(cron, timezone)
  const found: string[] = []
  for (let ms = Date.parse(after); found.length < count;) {
    const tick = next(ms)
    if (tick === null) break
    found.push(new Date(tick).toISOString().slice(0, 16))
    ms = tick
  }
  return found
}

const plain = suite('cron ticks')
plain('come strictly after the instant', () => {
  assert.equal(ticks('30 4 * * *', 'UTC', '2026-01-01T04:29:59.999Z', 1), ['2026-01-01T04:30'])
  assert.equal(ticks('30 4 * * *', 'UTC', '2026-01-01T04:30:00Z', 1), ['2026-01-02T04:30'])
  assert.equal(ticks('* * * * *', 'UTC', '2026-01-01T00:00:30.001Z', 2), [
    '2026-01-01T00:01',
    '2026-01-01T00:02',
  ])
})
plain('follow the clock of the zone', () => {
  assert.equal(ticks('0 9 * * MON', 'Asia/Kolkata', '2026-01-01T00:00:00Z', 2), [
    '2026-01-05T03:30',
    '2026-01-12T03:30',
  ])
  assert.equal(ticks('0 0 1 * *', 'Pacific/Auckland', '2026-01-15T00:00:00Z', 2), [
    '2026-01-31T11:00',
    '2026-02-28T11:00',
  ])
})
plain('know leap days, also over a century without one', () => {
  assert.equal(ticks('0 0 29 2 *', 'UTC', '2026-01-01T00:00:00Z', 2), [
    '2028-02-29T00:00',
    '2032-02-29T00:00',
  ])
  assert.equal(ticks('0 0 29 2 *', 'UTC', '2097-01-01T00:00:00Z', 1), ['2104-02-29T00:00'])
})
plain('fall on the ends of months that have such a day', () => {
  assert.equal(ticks('0 0 31 * *', 'UTC', '2026-01-15T00:00:00Z', 3), [
    '2026-01-31T00:00',
    '2026-03-31T00:00',
    '2026-05-31T00:00',
  ])
  assert.equal(ticks('59 23 31 12 *', 'Asia/Kathmandu', '2026-12-31T18:13:30Z', 1), ['2026-12-31T18:14'])
})
plain('may have seconds, before the minutes', () => {
  const seconds = (cron: string, timezone: string, after: string, count: number) => {
    const found: string[] = []
    for (let at: number | null = Date.parse(after); found.length < count && at !== null;) {
      at = ticksOf(cron, timezone).after(at)
      if (at !== null) found.push(new Date(at).toISOString().slice(0, 19))
    }
    return found
  }
  assert.equal(seconds('*/20 * * * * *', 'UTC', '2026-01-01T00:00:39.999Z', 3), [
    '2026-01-01T00:00:40',
    '2026-01-01T00:01:00',
    '2026-01-01T00:01:20',
  ])
  assert.equal(seconds('15 30 4 * * *', 'UTC', '2026-01-01T04:30:15Z', 1), ['2026-01-02T04:30:15'])
  // A fixed hour with seconds follows the same rule for clock changes.
  assert.equal(seconds('15 30 2 * * *', 'Europe/Berlin', '2026-03-28T12:00:00Z', 2), [
    '2026-03-29T01:00:00',
    '2026-03-30T00:30:15',
  ])
  assert.equal(seconds('15 30 * * * *', 'America/New_York', '2026-11-01T05:00:00Z', 3), [
    '2026-11-01T05:30:15',
    '2026-11-01T06:30:15',
    '2026-11-01T07:30:15',
  ])
})
plain('do not exist on a day that never occurs', () =>
  assert.equal(ticks('0 0 30 2 *', 'UTC', '2026-01-01T00:00:00Z', 1), []),
)
plain('come on the day of the month and on the day of the week', () =>
  assert.equal(ticks('0 0 13 * FRI', 'UTC', '2026-01-08T00:00:00Z', 3), [
    '2026-01-09T00:00',
    '2026-01-13T00:00',
    '2026-01-16T00:00',
  ]),
)
plain.run()

// Vixie cron: a fixed hour occurs once a day, also when the clocks change.
const fixed = suite('a fixed hour')
for (const [zone, cron, why, from, expected] of [
  [
    'America/New_York',
    '30 2 * * *',
    'skipped: when the gap ends',
    '2026-03-07T12:00:00Z',
    ['2026-03-08T07:00', '2026-03-09T06:30'],
  ],
  [
    'America/New_York',
    '30 1 * * *',
    'repeated: the first time',
    '2026-10-31T12:00:00Z',
    ['2026-11-01T05:30', '2026-11-02T06:30'],
  ],
  [
    'Europe/Berlin',
    '30 2 * * *',
    'skipped: when the gap ends',
    '2026-03-28T12:00:00Z',
    ['2026-03-29T01:00', '2026-03-30T00:30'],
  ],
  [
    'Europe/Berlin',
    '30 2 * * *',
    'repeated: the first time',
    '2026-10-24T12:00:00Z',
    ['2026-10-25T00:30', '2026-10-26T01:30'],
  ],
  [
    'Australia/Lord_Howe',
    '15 2 * * *',
    'skipped by half an hour',
    '2026-10-02T20:00:00Z',
    ['2026-10-03T15:30', '2026-10-04T15:15'],
  ],
  [
    'Australia/Lord_Howe',
    '45 1 * * *',
    'repeated by half an hour',
    '2026-04-04T00:00:00Z',
    ['2026-04-04T14:45', '2026-04-05T15:15'],
  ],
  [
    'America/Santiago',
    '0 0 * * *',
    'midnight is skipped',
    '2026-09-05T12:00:00Z',
    ['2026-09-06T04:00', '2026-09-07T03:00'],
  ],
  [
    'America/Santiago',
    '@daily',
    'midnight is skipped',
    '2026-09-05T12:00:00Z',
    ['2026-09-06T04:00', '2026-09-07T03:00'],
  ],
  [
    'America/New_York',
    '0 1,2 * * *',
    'two hours, one skipped',
    '2026-03-08T05:00:00Z',
    ['2026-03-08T06:00', '2026-03-08T07:00', '2026-03-09T05:00'],
  ],
  [
    'America/New_York',
    '*/20 1 * * *',
    'repeated: once each',
    '2026-11-01T04:00:00Z',
    ['2026-11-01T05:00', '2026-11-01T05:20', '2026-11-01T05:40', '2026-11-02T06:00'],
  ],
  [
    'America/New_York',
    '30 1-3 * * *',
    'a range with a skipped hour',
    '2026-03-08T05:00:00Z',
    ['2026-03-08T06:30', '2026-03-08T07:00', '2026-03-08T07:30', '2026-03-09T05:30'],
  ],
  [
    'America/New_York',
    '30 0-4/2,1 * * *',
    'a range with a repeated hour',
    '2026-11-01T04:00:00Z',
    ['2026-11-01T04:30', '2026-11-01T05:30', '2026-11-01T07:30', '2026-11-01T09:30', '2026-11-02T05:30'],
  ],
  [
    'Australia/Lord_Howe',
    '0,15,30,45 2 * * *',
    'half of the hour is skipped',
    '2026-10-02T20:00:00Z',
    ['2026-10-03T15:30', '2026-10-03T15:45', '2026-10-04T15:00'],
  ],
  [
    'Pacific/Apia',
    '0 12 * * *',
    'a whole day is skipped',
    '2011-12-29T23:00:00Z',
    ['2011-12-30T10:00', '2011-12-30T22:00', '2011-12-31T22:00'],
  ],
] as const) {
  fixed(`${cron} in ${zone}, ${why}`, () => assert.equal(ticks(cron, zone, from, expected.length), expected))
}
fixed('asked within the repeated hour has passed', () => {
  assert.equal(ticks('30 1 * * *', 'America/New_York', '2026-11-01T06:10:00Z', 1), ['2026-11-02T06:30'])
  assert.equal(ticks('30 1 * * *', 'America/New_York', '2026-11-01T05:10:00Z', 1), ['2026-11-01T05:30'])
})
fixed.run()

const elapsed = suite('a wildcard for the hour')
for (const [zone, cron, why, from, expected] of [
  [
    'America/New_York',
    '30 * * * *',
    'over the gap',
    '2026-03-08T06:00:00Z',
    ['2026-03-08T06:30', '2026-03-08T07:30', '2026-03-08T08:30'],
  ],
  [
    'America/New_York',
    '30 * * * *',
    'over the overlap',
    '2026-11-01T05:00:00Z',
    ['2026-11-01T05:30', '2026-11-01T06:30', '2026-11-01T07:30'],
  ],
  [
    'Europe/Berlin',
    '0 */2 * * *',
    'over the gap: 2 is skipped',
    '2026-03-28T22:30:00Z',
    ['2026-03-28T23:00', '2026-03-29T02:00', '2026-03-29T04:00'],
  ],
  [
    'Europe/Berlin',
    '0 */2 * * *',
    'over the overlap: 2 comes twice',
    '2026-10-24T21:30:00Z',
    ['2026-10-24T22:00', '2026-10-25T00:00', '2026-10-25T01:00', '2026-10-25T03:00'],
  ],
  [
    'Australia/Lord_Howe',
    '*/20 * * * *',
    'over a gap of half an hour',
    '2026-10-03T15:00:00Z',
    ['2026-10-03T15:10', '2026-10-03T15:40', '2026-10-03T16:00'],
  ],
  [
    'Australia/Lord_Howe',
    '0 * * * *',
    'over an overlap of half an hour',
    '2026-04-04T13:30:00Z',
    ['2026-04-04T14:00', '2026-04-04T15:30', '2026-04-04T16:30'],
  ],
] as const) {
  elapsed(`${cron} in ${zone}, ${why}`, () =>
    assert.equal(ticks(cron, zone, from, expected.length), expected),
  )
}
elapsed.run()

const bad = suite('a bad schedule')
const messageFor = (cron: string, timezone = 'UTC'): string => {
  try {
    ticksOf(cron, timezone)
  } catch (error) {
    return (error as Error).message
  }
  return assert.unreachable(`Expected "${cron}" to be refused`) as never
}
for (const cron of ['', '* * * *', '* * * * * * *', '0 0 0 1 1 * 2030', 'every day', '2026-01-01T00:00:00']) {
  bad(`${JSON.stringify(cron)} has neither five nor six fields`, () => {
    assert.match(messageFor(cron), 'five fields')
    assert.match(messageFor(cron), JSON.stringify(cron))
  })
}
for (const [cron, reason] of [
  ['60 * * * *', '60'],
  ['0 24 * * *', '24'],
  ['60 0 0 * * *', '60'],
  ['0 0 1 1 * 2030', '2030'],
  ['0 3 * 13 *', /^month: expected 1 to 12, got 13$/],
  ['0 3 * 0 *', /^month: expected 1 to 12, got 0$/],
  ['0 0 32 * *', /^day of the month: expected 1 to 31, got 32$/],
  ['0 0 0 * *', /^day of the month: expected 1 to 31, got 0$/],
  ['0 0 1,2-32/2 * *', /^day of the month: expected 1 to 31, got 32$/],
  ['0 0 32W * *', /^day of the month: expected 1 to 31, got 32$/],
  ['0 0 * * 8', /^day of the week: expected 0 to 7, got 8$/],
  ['0 0 * * 8#2', /^day of the week: expected 0 to 7, got 8$/],
  ['60 * * * * *', /^second: expected 0 to 59, got 60$/],
  ['a b c d e', 'illegal characters'],
  ['5/0 * * * *', '5/0'],
  ['@nightly', '@nightly'],
] as const) {
  bad(`${cron} is refused with the reason`, () => assert.match(messageFor(cron), reason))
}
bad('an unknown zone is named', () => {
  assert.match(messageFor('0 3 * * *', 'Mars/Olympus'), '"Mars/Olympus"')
  assert.match(messageFor('0 3 * * *', ''), 'time zone')
})
bad.run()

const DAY = 86_400_000
const any = suite(`any schedule (SVC_TEST_SEED=${SEED})`, { timeoutMs: 60_000 })
const ZONES = [
  'UTC',
  'America/New_York',
  'Europe/Berlin',
  'Australia/Lord_Howe',
  'America/Santiago',
  'Asia/Kathmandu',
  'Africa/Casablanca',
]
const year = Date.parse('2026-01-01T00:00:00Z')

any('a year of ticks rises strictly, with no tick between two of them', () => {
  const random = randomOf(SEED)
  for (let round = 0; round < 10; round++) {
    const zone = ZONES[random(ZONES.length)] ?? 'UTC'
    const minute = [`${random(60)}`, `*/${10 + random(50)}`, `${random(30)}-${30 + random(30)}/15`][random(3)]
    const hour = [
      `${random(24)}`,
      '*',
      `*/${1 + random(12)}`,
      `${random(12)},${12 + random(12)}`,
      `${random(6)}-${6 + random(18)}`,
    ][random(5)]
    const cron = `${minute} ${hour} * * ${['*', '1-5', `${random(7)}`][random(3)]}`
    const { after } = ticksOf(cron, zone)
    let last = year
    for (let tick = after(year); tick !== null && tick < year + 365 * DAY; tick = after(tick)) {
      assert.ok(tick > last, `${cron} ${zone}: ${tick} after ${last}`)
      assert.is(tick % 60_000, 0)
      if (random(10) === 0) {
        const between = last + 1 + random(tick - last - 1)
        assert.is(after(between), tick, `${cron} ${zone}: after ${between}`)
      }
      last = tick
    }
    assert.ok(last > year + 350 * DAY, `${cron} ${zone}`)
  }
})

any('a fixed hour comes once on each day of the year', () => {
  const random = randomOf(SEED)
  for (const zone of ZONES) {
    const { after } = ticksOf(`${random(60)} ${random(24)} * * *`, zone)
    const days = new Map<string, number>()
    const day = new Intl.DateTimeFormat('sv', { timeZone: zone, dateStyle: 'short' })
    for (let tick = after(year); tick !== null && tick < year + 365 * DAY; tick = after(tick)) {
      days.set(day.format(tick), (days.get(day.format(tick)) ?? 0) + 1)
    }
    assert.equal(new Set(days.values()), new Set([1]), zone)
    assert.ok(days.size >= 364, `${zone}: ${days.size}`)
  }
})
any.run()
