//! Before a byte of weights is fetched: whether a model fits, what does not, and what helps; and
//! that what helps really works.

mod world;

use protocol::{
    Command, Event, Fit, FitReport, KvFormat, Mode, Residency, Subject, TrResult, Wish, abi,
};
use world::models::{small, wide};
use world::{Engine, World, refused};

/// Less than the 12.8 MB of the wide model's weights, enough for its vocabulary's tables.
const LITTLE: u64 = 10_000_000;

fn little() -> World {
    let mut world = World::not_started(Default::default());
    world.start(Engine::new(LITTLE));
    world
}

fn newest_fit(world: &World) -> Fit {
    let fits = world.events.iter().rev().find_map(|event| match event {
        Event::Fit(fit) => Some(fit.as_ref().clone()),
        _ => None,
    });
    fits.expect("a verdict")
}

fn loaded(world: &World) -> FitReport {
    match world.events.last() {
        Some(Event::Loaded { fit, .. }) => **fit,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_model_that_fits_is_said_to_fit_before_it_is_fetched() {
    let model = small();
    let mut world = World::new();
    world.serve(&model);
    world.ask_server(&model);
    world.run_until(|event| matches!(event, Event::Fit(_)));
    let fit = newest_fit(&world);
    assert_eq!((fit.model, fit.over), (Some(model.id()), None));
    assert!(fit.levers.is_empty() && fit.report.total <= fit.report.limit);
    assert!(fit.report.taken.is_none());
    world.run();
    world.load(model.id());
    let report = loaded(&world);
    assert_eq!(report.total, fit.report.total);
    let taken = report.taken.expect("it is loaded").total();
    assert!(
        taken.abs_diff(report.total) * 50 <= report.total,
        "{report:?}"
    );
}

/// The wide model's embedding is 12.8 MB, and its head is the same: neither fewer positions nor
/// smaller keys help, nor keeping the embedding; reading it as it goes does.
#[test]
fn one_word_takes_a_model_that_does_not_fit_in_the_way_that_does() {
    let model = wide();
    let mut whole = World::loaded(&model);
    whole.measure(Mode::Int8V1, 0, 4);
    whole.run();
    let wanted = whole.measured();

    let mut world = little();
    world.serve(&model);
    let import = world.ask_server(&model);
    world.run();
    assert_eq!(refused(world.last_of(import)).code, TrResult::OutOfMemory);
    let fit = newest_fit(&world);
    let over = fit.over.expect("it does not fit");
    assert_eq!(over.region, abi::REGION_WEIGHTS);
    assert!(over.needed > 12_800_000 && over.left < LITTLE, "{over:?}");
    let wishes: Vec<Wish> = fit.levers.iter().map(|lever| lever.wish).collect();
    let paged = Wish {
        context: 96,
        kv_format: KvFormat::F16,
        residency: Residency::Paged,
    };
    assert_eq!(wishes, [paged]);
    let lever = fit.levers[0].report;
    assert!(
        lever.total <= LITTLE && lever.streamed > 12_800_000,
        "{lever:?}"
    );
    assert_eq!(
        world.pieces_asked(&model.url).len(),
        1,
        "only the header came"
    );

    world.command(Command::Prefer(paged));
    let import = world.ask_server(&model);
    world.run();
    assert!(matches!(world.last_of(import), Event::Imported { .. }));
    world.load(model.id());
    let report = loaded(&world);
    assert_eq!(
        (report.residency, report.total),
        (Residency::Paged, lever.total)
    );
    let taken = report.taken.expect("it is loaded").total();
    assert!(taken <= LITTLE && taken.abs_diff(report.total) * 50 <= report.total);
    world.measure(Mode::Int8V1, 0, 4);
    world.run();
    assert_eq!(world.measured(), wanted);

    // The wish was for that one load: the next is told again what helps.
    world.command(Command::Unload);
    world.load(model.id());
    let error = world.failure(Subject::Load(model.id()));
    assert_eq!(error.code, TrResult::OutOfMemory);
    assert_eq!(newest_fit(&world).levers.len(), 1);
    world.command(Command::Prefer(paged));
    world.load(model.id());
    assert_eq!(loaded(&world).residency, Residency::Paged);
}

#[test]
fn where_nothing_helps_nothing_is_offered() {
    let model = wide();
    let mut world = World::not_started(Default::default());
    world.start(Engine::new(1_000_000));
    world.serve(&model);
    let import = world.ask_server(&model);
    world.run();
    assert_eq!(refused(world.last_of(import)).code, TrResult::OutOfMemory);
    let fit = newest_fit(&world);
    assert!(fit.over.is_some() && fit.levers.is_empty(), "{fit:?}");
    assert!(world.names().is_empty());
}
