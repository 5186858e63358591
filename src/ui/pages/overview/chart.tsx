import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type UPlot from 'uplot'
import { textOf } from '../../frame/api.ts'
import { scheme } from '../../frame/theme.ts'

export interface Line {
  readonly name: string
  /** A variable of the style sheet, such as `--good`. */
  readonly color: string
  /** Lines differ by more than their color. */
  readonly stroke?: keyof typeof DASHES
  readonly values: readonly (number | null)[]
}

interface Props {
  /** What the picture shows, for screen readers. */
  readonly label: string
  /** Seconds since 1970. */
  readonly times: readonly number[]
  readonly lines: readonly Line[]
  /** Bars on top of each other instead of lines. */
  readonly isStacked?: boolean
  /** Days begin in UTC, so their labels are in UTC too. */
  readonly isUtc: boolean
  readonly textOfValue: (value: number) => string
}

type Library = typeof UPlot

/** Lengths of strokes and gaps. */
const DASHES = { dashed: [8, 4], dotted: [2, 4] } as const

const HEIGHT = 220

/** A picture of numbers over time. The library is loaded with the first one, so that no other page waits for it. */
export const Chart = (props: Props) => {
  const { label, times, lines, textOfValue } = props
  const place = useRef<HTMLDivElement>(null)
  const library = useSignal<Library | null>(null)
  const failure = useSignal('')
  const pointed = useSignal<number | null>(null)
  const data = JSON.stringify([times, lines])

  useEffect(() => {
    import('uplot').then(
      (loaded) => (library.value = loaded.default),
      (error: unknown) => (failure.value = textOf(error)),
    )
  }, [])

  useEffect(() => {
    const element = place.current
    if (!element || !library.value) return
    const chart = new library.value(
      optionsOf(props, element, library.value, (index) => (pointed.value = index)),
      dataOf(props),
      element,
    )
    const { canvas } = chart.ctx
    canvas.setAttribute('role', 'img')
    canvas.setAttribute('aria-label', label)
    const resized = new ResizeObserver(() => chart.setSize({ width: element.clientWidth, height: HEIGHT }))
    resized.observe(element)
    return () => {
      resized.disconnect()
      chart.destroy()
    }
  }, [library.value, scheme.value, data])

  const index = pointed.value
  const time = index === null ? undefined : times[index]
  return (
    <figure class="chart">
      <ul class="legend">
        {lines.map(({ name, color, stroke = '' }) => (
          <li key={name} style={{ '--mark': `var(${color})` }} class={stroke}>
            {name}
            {index !== null && `: ${shown(lines, name, index, textOfValue)}`}
          </li>
        ))}
        {time !== undefined && <li class="moment">{momentText(time, props.isUtc)}</li>}
      </ul>
      {failure.value ? (
        <p class="hint">
          The picture could not be loaded: {failure.value}. After an upgrade, reload the page.
        </p>
      ) : (
        <div ref={place} style={{ minHeight: HEIGHT }} />
      )}
    </figure>
  )
}

const momentText = (seconds: number, isUtc: boolean): string =>
  new Date(seconds * 1000).toLocaleString('en-GB', {
    dateStyle: 'medium',
    timeStyle: 'short',
    ...(isUtc && { timeZone: 'UTC' }),
  })

/**
 * The labels of times: the least seconds between two, the label, and what follows it where another year, month or day begins.
 * The default of the library writes months before days, and hours with am and pm.
 */
const TIME_LABELS: UPlot.Axis.Values = [
  [31_536_000, '{YYYY}', null, null, null, null, null, null, 1],
  [2_419_200, '{MMM}', '\n{YYYY}', null, null, null, null, null, 1],
  [86_400, '{D} {MMM}', '\n{YYYY}', null, null, null, null, null, 1],
  [60, '{HH}:{mm}', '\n{D} {MMM} {YYYY}', null, '\n{D} {MMM}', null, null, null, 1],
]

const shown = (lines: readonly Line[], name: string, index: number, text: Props['textOfValue']): string => {
  const value = lines.find((line) => line.name === name)?.values[index]
  return value === null || value === undefined ? '–' : text(value)
}

/** Stacked bars are drawn from the sum of all down to the first, each over the one before. */
const dataOf = ({ times, lines, isStacked }: Props): UPlot.AlignedData => {
  if (!isStacked) return [[...times], ...lines.map(({ values }) => [...values])]
  const sums: number[][] = []
  for (const { values } of lines)
    sums.push(values.map((value, at) => (value ?? 0) + (sums.at(-1)?.[at] ?? 0)))
  return [[...times], ...sums.reverse()]
}

const optionsOf = (
  { times, lines, isStacked, isUtc, textOfValue }: Props,
  element: HTMLElement,
  library: Library,
  onPoint: (index: number | null) => void,
): UPlot.Options => {
  const style = getComputedStyle(element)
  const color = (name: string): string => style.getPropertyValue(name)
  const axis = {
    stroke: color('--hint'),
    grid: { stroke: color('--line'), width: 1 },
    ticks: { show: false },
  }
  const step = (times[1] ?? 0) - (times[0] ?? 0) // a bar is as long as its period
  const bars = library.paths.bars?.({ size: [0.8, 60], align: 1 })
  const seriesOf = (line: Line): UPlot.Series =>
    isStacked && bars
      ? { fill: color(line.color), paths: bars, points: { show: false } }
      : {
          stroke: color(line.color),
          width: 2,
          spanGaps: true,
          points: { show: true, size: 5 },
          ...(line.stroke && { dash: [...DASHES[line.stroke]] }),
        }
  return {
    width: element.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
    ...(isUtc && { tzDate: (seconds: number) => library.tzDate(new Date(seconds * 1000), 'Etc/UTC') }),
    scales: {
      x: { range: (_, from, to) => [from, to + step] },
      y: { range: (_, __, most) => [0, Math.max(most, 1) * 1.1] },
    },
    axes: [
      { ...axis, values: TIME_LABELS },
      {
        ...axis,
        size: 70,
        values: (_, values) => values.map((value) => (value % 1 === 0 ? textOfValue(value) : '')),
      },
    ],
    series: [{}, ...(isStacked ? lines.toReversed() : lines).map(seriesOf)],
    hooks: { setCursor: [({ cursor: { idx } }) => onPoint(idx ?? null)] },
  }
}
