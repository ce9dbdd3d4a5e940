//! Questions, answers and the conversations they stand in.

use super::*;

#[test]
fn an_answer_streams_and_is_saved() {
    let mut app = chatting();
    let effects = send(&mut app, "  Hi  ");
    let asked = Message {
        role: Role::User,
        content: "Hi".into(),
    };
    let sampling = Sampling {
        seed: 7,
        temperature: 0.2,
        top_p: 0.9,
        max_new: 512,
        repetition_penalty: 1.1,
        ..Sampling::GREEDY
    };
    let command = Command::Chat {
        request: RequestId(1),
        messages: vec![asked],
        sampling,
        kept_as: None,
    };
    let conversation = ConversationId(NOW);
    assert_eq!(
        effects,
        [
            Effect::SaveConversation(conversation),
            Effect::Send(command)
        ]
    );
    assert_eq!(app.phase(), Phase::Generating);

    app.apply(
        NOW,
        Event::Prefill {
            request: RequestId(1),
            done: 4,
            total: 9,
        },
    );
    assert_eq!(app.chat.live().unwrap().prefill, Some((4, 9)));
    assert_eq!(text(&mut app, 1, "Hel"), []);
    assert_eq!(app.chat.live().unwrap().prefill, None);
    let late = Event::Text {
        request: RequestId(1),
        text: "lo".into(),
    };
    assert_eq!(
        app.apply(NOW + 2000, late),
        [Effect::SaveConversation(conversation)]
    );
    assert_eq!(text(&mut app, 99, "a stale request"), []);
    assert_eq!(
        done(&mut app, 1, Finish::Stop),
        [Effect::SaveConversation(conversation)]
    );
    assert_eq!(app.phase(), Phase::Ready);

    let turns = &app.chat.current().unwrap().turns;
    assert_eq!(turns[1].text, "Hello");
    let end = turns[1].end.clone().unwrap();
    assert_eq!((end.model.as_str(), end.seed), ("model-1", 7));
    assert_eq!(app.chat.positions(), Some(12));
}

/// The roles alternate whatever happened before: templates refuse anything else.
#[test]
fn what_the_model_is_given() {
    let turn = |role, text: &str| Turn {
        role,
        text: text.into(),
        end: None,
    };
    let (user, assistant) = (Role::User, Role::Assistant);
    let cases = [
        ("", vec![turn(user, "a")], "user:a"),
        (
            " be brief ",
            vec![turn(user, "a")],
            "system:be brief user:a",
        ),
        (
            "",
            vec![
                turn(user, "a"),
                turn(assistant, "b"),
                turn(user, "c"),
                turn(assistant, ""),
            ],
            "user:a assistant:b user:c",
        ),
        // The first question failed and has no answer.
        (
            "",
            vec![turn(user, "a"), turn(assistant, ""), turn(user, "c")],
            "user:c",
        ),
        // A stopped answer is still an answer.
        (
            "",
            vec![turn(user, "a"), turn(assistant, "b"), turn(user, "c")],
            "user:a assistant:b user:c",
        ),
    ];
    for (system, turns, expected) in cases {
        let conversation = Conversation {
            revision: 0,
            id: ConversationId(1),
            title: String::new(),
            updated: 0,
            turns,
        };
        let messages = conversation.messages(system);
        let told: Vec<_> = messages
            .iter()
            .map(|m| format!("{}:{}", m.role.name(), m.content))
            .collect();
        assert_eq!(told.join(" "), expected);
    }
}

#[test]
fn stop_is_sent_once_and_the_text_stays() {
    let mut app = chatting();
    send(&mut app, "Hi");
    text(&mut app, 1, "Par");
    let stop = Effect::Send(Command::Stop {
        request: RequestId(1),
    });
    assert_eq!(app.act(NOW, Action::Stop), [stop]);
    assert_eq!(app.act(NOW, Action::Stop), []);
    assert_eq!(app.phase(), Phase::Generating, "until the worker says so");
    done(&mut app, 1, Finish::Cancelled);
    assert_eq!(app.chat.current().unwrap().turns[1].text, "Par");
    assert_eq!(app.phase(), Phase::Ready);
}

#[test]
fn a_failed_answer_keeps_the_question_and_can_be_asked_again() {
    let mut app = chatting();
    send(&mut app, "Hi");
    let error = trouble(TrResult::ContextExceeded);
    app.apply(
        NOW,
        Event::Failed {
            subject: Subject::Request(RequestId(1)),
            error: error.clone(),
        },
    );
    assert_eq!(app.notices.shown()[0].report, error);
    let turns = &app.chat.current().unwrap().turns;
    assert_eq!(turns[0].text, "Hi");
    assert_eq!(
        turns[1].end.as_ref().unwrap().end,
        End::Failed(TrResult::ContextExceeded)
    );

    let again = app.act(NOW, Action::Again { seed: 8 });
    assert!(matches!(
        &again[1],
        Effect::Send(Command::Chat { request: RequestId(2), messages, sampling, .. })
            if messages.len() == 1 && sampling.seed == 8
    ));
    assert_eq!(app.chat.current().unwrap().turns.len(), 2);
}

#[test]
fn nothing_is_sent_while_it_cannot_be_answered() {
    let mut empty = opened(Vec::new());
    assert_eq!(send(&mut empty, "Hi"), []);
    let mut app = chatting();
    assert_eq!(send(&mut app, " \n"), []);
    send(&mut app, "one");
    assert_eq!(send(&mut app, "two"), [], "one answer at a time");

    let bare = ModelSummary {
        chat: ChatAbility::NoTokenizer,
        ..summary(1)
    };
    let mut app = chatting();
    let Event::Loaded { fit, .. } = loaded(1) else {
        unreachable!()
    };
    app.apply(NOW, Event::Loaded { model: bare, fit });
    assert_eq!(send(&mut app, "Hi"), []);
    assert_eq!(app.phase(), Phase::Ready, "it can be measured");
}

/// R22: old conversations open and close with no model at all.
#[test]
fn history_needs_no_model() {
    let turns = vec![
        Turn {
            role: Role::User,
            text: "a".into(),
            end: None,
        },
        Turn {
            role: Role::Assistant,
            text: "b".into(),
            end: None,
        },
    ];
    let kept = |id, updated| Conversation {
        revision: 0,
        id: ConversationId(id),
        title: "t".into(),
        updated,
        turns: turns.clone(),
    };
    let mut app = App::default();
    let conversations = vec![kept(1, 10), kept(2, 30), kept(3, 20)];
    app.act(
        NOW,
        Action::Restored {
            conversations,
            settings: None,
            unfinished_load: None,
        },
    );
    let order: Vec<_> = app.chat.conversations().iter().map(|c| c.id.0).collect();
    assert_eq!(order, [2, 3, 1], "newest first");
    assert_eq!(app.chat.current().unwrap().id, ConversationId(2));
    let cut_off = app.chat.current().unwrap().turns[1].end.clone().unwrap();
    assert_eq!(cut_off.end, End::Interrupted);
    assert_eq!(
        app.act(NOW, Action::Open(ConversationId(1))),
        [Effect::OpenChat]
    );
    let removed = [Effect::RemoveConversation(ConversationId(1))];
    assert_eq!(app.act(NOW, Action::Forget(ConversationId(1))), removed);
    assert!(app.chat.current().is_none());
    assert!(!app.first_visit(), "two conversations are left");
}

#[test]
fn forgetting_the_conversation_being_answered_stops_the_answer() {
    let mut app = chatting();
    send(&mut app, "Hi");
    let effects = app.act(NOW, Action::Forget(ConversationId(NOW)));
    let stop = Effect::Send(Command::Stop {
        request: RequestId(1),
    });
    assert_eq!(
        effects,
        [stop, Effect::RemoveConversation(ConversationId(NOW))]
    );
    assert_eq!(text(&mut app, 1, "late"), []);
    assert_eq!(done(&mut app, 1, Finish::Cancelled), []);
    assert_eq!(app.phase(), Phase::Ready);
}

#[test]
fn an_answer_goes_on_while_another_conversation_is_open() {
    let mut app = chatting();
    send(&mut app, "Hi");
    app.act(NOW, Action::NewConversation);
    assert!(!app.chat.live_here());
    text(&mut app, 1, "Hello");
    done(&mut app, 1, Finish::Stop);
    assert_eq!(
        app.chat.find(ConversationId(NOW)).unwrap().turns[1].text,
        "Hello"
    );
    send(&mut app, "Other");
    assert_eq!(
        app.chat.conversations().len(),
        2,
        "begun in the same millisecond"
    );
}
